package config

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Size is a number of bytes, written as 64MiB, 512KiB or a plain number.
type Size int64

// Units of Size.
const (
	KiB Size = 1 << (10 * (iota + 1))
	MiB
	GiB
)

// UnmarshalText reads a size with or without a unit. KiB, MiB and so on are
// powers of 1024; kB, MB and so on are powers of 1000.
func (s *Size) UnmarshalText(text []byte) error {
	if len(text) == 0 || text[0] < '0' || text[0] > '9' {
		return errSize
	}
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > math.MaxInt64 {
		return errSize
	}
	*s = Size(n)
	return nil
}

var errSize = errors.New("must be a size, for example 64MiB")

// MarshalText writes what String returns.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String is exact: the largest binary unit that divides the size.
func (s Size) String() string {
	units := []string{"", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	i, n := 0, int64(s)
	for n != 0 && n%1024 == 0 && i < len(units)-1 {
		i, n = i+1, n/1024
	}
	return strconv.FormatInt(n, 10) + units[i]
}

// Duration is a time span, written as 10s, 250ms or 1m30s.
type Duration time.Duration

// UnmarshalText reads a duration as time.ParseDuration does, not negative.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		if _, numeric := strconv.ParseFloat(string(text), 64); numeric == nil {
			return fmt.Errorf("needs a unit, for example %ss", text)
		}
		return errDuration
	}
	if parsed < 0 {
		return errors.New("must not be negative")
	}
	*d = Duration(parsed)
	return nil
}

var errDuration = errors.New("must be a duration, for example 10s, 250ms or 1m30s")

// MarshalText writes what String returns.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String is exact and leaves out zero parts: 10m, not 10m0s.
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// Ratio is a share from 0 to 1, written as 75% or 0.75.
type Ratio float64

var ratioText = regexp.MustCompile(`^([0-9]{1,3}(?:\.[0-9]{1,6})?)(%?)$`)

// UnmarshalText reads a percentage or a fraction.
func (r *Ratio) UnmarshalText(text []byte) error {
	parts := ratioText.FindStringSubmatch(string(text))
	if parts == nil {
		return errRatio
	}
	number := parts[1]
	if parts[2] != "" {
		// The exponent keeps it exact: 29% is the very number 0.29.
		number += "e-2"
	}
	parsed, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil:
		return errRatio
	case parsed > 1 && parts[2] == "":
		return fmt.Errorf("must be a fraction from 0 to 1, or a percentage, for example %s%%", text)
	case parsed > 1:
		return errors.New("must not be more than 100%")
	}
	*r = Ratio(parsed)
	return nil
}

var errRatio = errors.New("must be a share, for example 75% or 0.75")

// MarshalText writes what String returns.
func (r Ratio) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// String is a percentage with as many digits as necessary.
func (r Ratio) String() string {
	text := strconv.FormatFloat(float64(r)*100, 'f', 6, 64)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".") + "%"
}

// Count is a number of things, written as 50000000 or 50_000_000.
type Count int64

var countText = regexp.MustCompile(`^[0-9]+(_[0-9]+)*$`)

// UnmarshalText reads digits, with underscores between them if there are any.
func (c *Count) UnmarshalText(text []byte) error {
	if !countText.Match(text) {
		return errCount
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(string(text), "_", ""), 10, 64)
	if err != nil {
		return errCount
	}
	*c = Count(n)
	return nil
}

var errCount = errors.New("must be a whole number, for example 50000000 or 50_000_000")

// MarshalText writes plain digits.
func (c Count) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(c), 10), nil }
