package router

import (
	"bytes"
	"fmt"
	"math"
	"time"
)

// time is the record's timestamp: the column's if there is one and it is not
// NULL, else the commit time. It is cut to milliseconds, which is what Kafka
// stores, and in UTC, so that a repeat is equal.
func (p *plan) time(commitTime time.Time, values [][]byte) (time.Time, *fault) {
	if p.timestamp < 0 || values[p.timestamp] == nil {
		if commitTime.Unix() < 0 {
			return time.Time{}, &fault{
				reason: fmt.Sprintf("its transaction's commit time %s is before 1970, which Kafka cannot store", commitTime.UTC().Format(time.RFC3339Nano)),
				hint:   "check the clock of the PostgreSQL server, and name a column in outbox.columns.timestamp; " + giveUpHint,
			}
		}
		return toMillisecond(commitTime), nil
	}
	text := values[p.timestamp]
	t, problem := parseTimestamp(text, p.timestampType)
	if problem == "" {
		return toMillisecond(t), nil
	}
	f := columnFault(p.timestampName, fmt.Sprintf("is %q, which %s", shorten(text), problem))
	f.hint = "leave outbox.columns.timestamp out to use the commit time; " + giveUpHint
	return time.Time{}, f
}

// occurred is when the event happened in microseconds since 1970, 0 when the
// column is NULL, infinite, before 1970 or no timestamp: it is only measured.
func (p *plan) occurred(values [][]byte) int64 {
	if p.occurredAt < 0 || values[p.occurredAt] == nil {
		return 0
	}
	t, problem := parseTimestamp(values[p.occurredAt], p.occurredAtType)
	if problem != "" || t.Unix() > math.MaxInt64/1_000_000 {
		return 0
	}
	return t.UnixMicro()
}

func toMillisecond(t time.Time) time.Time { return time.UnixMilli(t.UnixMilli()).UTC() }

// parseTimestamp reads what PostgreSQL prints for timestamptz and timestamp
// with DateStyle ISO (PostgreSQL documentation, 8.5.2), the latter as UTC. The
// problem is empty when the instant is one that Kafka can store.
func parseTimestamp(text []byte, typeOID uint32) (t time.Time, problem string) {
	const unreadable = "is not a timestamp in ISO format; the replication session must have DateStyle = ISO"
	if string(text) == "infinity" || string(text) == "-infinity" {
		return t, "is no instant that Kafka can store"
	}
	rest, beforeChrist := bytes.CutSuffix(text, []byte(" BC"))
	c := clockReader{rest: rest, ok: true}
	year := c.number(4, 6)
	c.expect('-')
	month := c.number(2, 2)
	c.expect('-')
	day := c.number(2, 2)
	c.expect(' ')
	hour := c.number(2, 2)
	c.expect(':')
	minute := c.number(2, 2)
	c.expect(':')
	second := c.number(2, 2)
	nanosecond := c.fraction()
	offset, hasOffset := c.offset()
	if !c.ok || len(c.rest) > 0 || month < 1 || month > 12 || hour > 23 || minute > 59 || second > 59 {
		return t, unreadable
	}
	if typeOID == timestamptzOID && !hasOffset || typeOID == timestampOID && hasOffset {
		return t, unreadable
	}
	local := time.Date(year, time.Month(month), day, hour, minute, second, nanosecond, time.UTC)
	if year == 0 || !beforeChrist && local.Day() != day {
		return t, unreadable
	}
	t = local.Add(-offset)
	if beforeChrist || t.Unix() < 0 {
		return t, "is before 1970, which Kafka cannot store"
	}
	return t, ""
}

// clockReader reads fixed fields from the front; ok turns false at the first
// that does not fit.
type clockReader struct {
	rest []byte
	ok   bool
}

func (c *clockReader) number(minDigits, maxDigits int) (n int) {
	digits := 0
	for digits < maxDigits && digits < len(c.rest) && isDigit(c.rest[digits]) {
		n = n*10 + int(c.rest[digits]-'0')
		digits++
	}
	c.ok = c.ok && digits >= minDigits
	c.rest = c.rest[digits:]
	return n
}

func (c *clockReader) expect(b byte) {
	if c.ok = c.ok && c.peek() == b; c.ok {
		c.rest = c.rest[1:]
	}
}

func (c *clockReader) peek() byte {
	if len(c.rest) == 0 {
		return 0
	}
	return c.rest[0]
}

// fraction reads up to six digits after a point, in nanoseconds.
func (c *clockReader) fraction() int {
	if c.peek() != '.' {
		return 0
	}
	c.expect('.')
	before := len(c.rest)
	n := c.number(1, 6)
	for digits := before - len(c.rest); digits < 9; digits++ {
		n *= 10
	}
	return n
}

// offset reads +HH, +HH:MM or +HH:MM:SS, if there is one.
func (c *clockReader) offset() (offset time.Duration, present bool) {
	sign := c.peek()
	if sign != '+' && sign != '-' {
		return 0, false
	}
	c.expect(sign)
	offset = time.Duration(c.number(2, 2)) * time.Hour
	for _, unit := range []time.Duration{time.Minute, time.Second} {
		if c.peek() == ':' {
			c.expect(':')
			offset += time.Duration(c.number(2, 2)) * unit
		}
	}
	if sign == '-' {
		offset = -offset
	}
	return offset, true
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
