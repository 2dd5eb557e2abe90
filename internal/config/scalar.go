package config

import (
	"errors"
	"fmt"
	"math"
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
