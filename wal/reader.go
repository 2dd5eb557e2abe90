package wal

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/jackc/pglogrepl"
)

// reader takes a message apart. After the first failure every method returns
// zero and err keeps the cause, so that callers check once.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

// take returns the next n bytes, or nil when they are not there. n comes from
// the wire and may be anything.
func (r *reader) take(n uint32) []byte {
	if r.err != nil {
		return nil
	}
	if uint64(n) > uint64(len(r.rest)) {
		r.fail("%d bytes announced, %d left", n, len(r.rest))
		return nil
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (r *reader) lsn() pglogrepl.LSN { return pglogrepl.LSN(r.uint64()) }

// end makes sure that nothing is left.
func (r *reader) end() {
	if r.err == nil && len(r.rest) > 0 {
		r.fail("%d bytes left over", len(r.rest))
	}
}

// count reads a number of columns.
func (r *reader) count() int {
	n := int16(r.uint16())
	if n < 0 {
		r.fail("%d columns", n)
		return 0
	}
	return int(n)
}

// string reads a zero-terminated string.
func (r *reader) string() string {
	if r.err != nil {
		return ""
	}
	end := bytes.IndexByte(r.rest, 0)
	if end < 0 {
		r.fail("a string without its end")
		return ""
	}
	s := string(r.rest[:end])
	r.rest = r.rest[end+1:]
	return s
}

// tag reads the byte that says which tuple follows.
func (r *reader) tag(allowed ...byte) byte {
	tag := r.byte()
	if r.err == nil && bytes.IndexByte(allowed, tag) < 0 {
		r.fail("tuple tag %q where one of %q belongs", tag, string(allowed)) // allowed itself would be put on the heap
	}
	return tag
}

// value reads one column of an inserted row: nil for NULL.
func (r *reader) value() []byte {
	switch kind := r.byte(); {
	case r.err != nil:
		return nil
	case kind == 'n':
		return nil
	case kind == 't':
		return r.take(r.uint32())
	case kind == 'u':
		r.fail("an inserted row with an unchanged TOAST value")
	case kind == 'b':
		r.fail("a value in binary format, which was not asked for")
	default:
		r.fail("value of unknown kind %q", kind)
	}
	return nil
}

// skipTuple reads over a tuple whose values do not matter.
func (r *reader) skipTuple() {
	for range r.count() {
		switch kind := r.byte(); kind {
		case 'n', 'u':
		case 't', 'b':
			r.take(r.uint32())
		default:
			r.fail("value of unknown kind %q", kind)
		}
		if r.err != nil {
			return
		}
	}
}
