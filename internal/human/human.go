// Package human writes quantities and lines for people: the same number looks
// the same in alerts, on the screen of slot status and in the messages of slot
// commands, and every screen breaks its lines in the same way.
package human

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Bytes has three digits: "10.2 GiB", "16 MiB", "-7 MiB".
func Bytes[T int64 | float64](n T) string {
	bytes := float64(n)
	switch {
	case bytes < 0:
		return "-" + Bytes(-bytes)
	case bytes >= math.MaxInt64:
		return "8 EiB"
	}
	number, unit, _ := strings.Cut(humanize.IBytesN(uint64(bytes), 3), " ")
	if strings.Contains(number, ".") {
		number = strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
	}
	return number + " " + unit
}

// BytesPerSecond is "3.2 MiB/s".
func BytesPerSecond(rate float64) string { return Bytes(math.Round(rate)) + "/s" }

// Seconds has the two largest units: "45 s", "1 h 20 min". What is negative is
// 0 s; a year and more is said as such.
func Seconds(seconds float64) string {
	const minute, hour, day, year = 60, 3600, 86400, 365 * 86400
	if seconds >= year {
		return "more than a year"
	}
	s := int64(max(seconds, 0))
	switch {
	case s < minute:
		return fmt.Sprintf("%d s", s)
	case s < hour:
		return twoUnits(s/minute, "min", s%minute, "s")
	case s < day:
		return twoUnits(s/hour, "h", s%hour/minute, "min")
	}
	return twoUnits(s/day, "d", s%day/hour, "h")
}

func twoUnits(large int64, name string, small int64, smallName string) string {
	if small == 0 {
		return fmt.Sprintf("%d %s", large, name)
	}
	return fmt.Sprintf("%d %s %d %s", large, name, small, smallName)
}

// Moment is a time of a clock that the reader may not share, in UTC.
func Moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// Percent writes a ratio: "78 %", "75.2 %".
func Percent(ratio float64) string {
	return strconv.FormatFloat(math.Round(1000*ratio)/10, 'f', -1, 64) + " %"
}

// Count has commas between thousands.
func Count(n int64) string { return humanize.Comma(n) }

// Plural is "1 row" or "2,000 rows".
func Plural(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Count(n) + " " + thing + "s"
}
