package pgserver

import (
	"fmt"
	"strconv"
	"strings"
)

// Oldest is the oldest major version that Find accepts.
const Oldest = 14

// downloads names the minor release that is fetched for each major version.
var downloads = map[int]string{
	14: "14.22.0",
	15: "15.17.0",
	16: "16.13.0",
	17: "17.9.0",
	18: "18.3.0",
}

const newestDownload = 18

// version is a PostgreSQL version: major and minor, minor -1 for any.
type version struct{ major, minor int }

func (v version) String() string {
	if v.minor < 0 {
		return strconv.Itoa(v.major)
	}
	return fmt.Sprintf("%d.%d", v.major, v.minor)
}

func (v version) matches(want version) bool {
	return v.major == want.major && (want.minor < 0 || v.minor == want.minor)
}

// less orders versions from old to new.
func (v version) less(w version) bool {
	return v.major < w.major || v.major == w.major && v.minor < w.minor
}

// parseVersion reads "18", "18.3" or "18.3.0".
func parseVersion(s string) (version, error) {
	parts := strings.Split(s, ".")
	v := version{minor: -1}
	var err error
	if v.major, err = strconv.Atoi(parts[0]); err != nil || v.major < 1 || len(parts) > 3 {
		return version{}, fmt.Errorf("PostgreSQL version %q: want a form like 18 or 18.3", s)
	}
	if len(parts) > 1 {
		if v.minor, err = strconv.Atoi(parts[1]); err != nil || v.minor < 0 {
			return version{}, fmt.Errorf("PostgreSQL version %q: want a form like 18 or 18.3", s)
		}
	}
	return v, nil
}

// parseBanner reads the version from "postgres (PostgreSQL) 15.18 (Debian ...)".
// A beta or a release candidate ("19beta1") has no minor number.
func parseBanner(s string) (version, error) {
	_, rest, found := strings.Cut(s, "(PostgreSQL) ")
	fields := strings.Fields(rest)
	if !found || len(fields) == 0 {
		return version{}, fmt.Errorf("no PostgreSQL version in %q", s)
	}
	number := fields[0]
	if i := strings.IndexFunc(number, func(r rune) bool { return r != '.' && (r < '0' || r > '9') }); i >= 0 {
		number = number[:i]
	}
	return parseVersion(number)
}
