package check

import (
	"fmt"
	"strings"

	"github.com/cdcpub/cdcpub/slotmon"
)

// oldest and newest are the major versions that cdcpub is tested with.
const oldest, newest = 14, 18

// defects of logical decoding that matter for a publisher, each with the first
// minor version without it, by major version (PostgreSQL release notes of
// 15.13 and 15.14; the other numbers are those of the same release days).
var defects = []struct {
	fixed map[int]int
	what  string
}{
	{map[int]int{14: 18, 15: 13, 16: 9, 17: 5},
		"rows can be lost when a table or publication is altered while transactions that began before are still writing"},
	{map[int]int{14: 19, 15: 14, 16: 10, 17: 6},
		"confirmed_flush_lsn can move backwards (rows are published again), and decoding can fail for want of memory when tables are altered beside long transactions"},
}

func version(server *slotmon.Server) outcome {
	major, minor := server.VersionNum/10000, server.VersionNum%10000
	switch {
	case major < oldest:
		return fail("PostgreSQL %s is not supported", server.Version).cured(fmt.Sprintf("upgrade to one of %d to %d", oldest, newest))
	case major > newest:
		return warn("PostgreSQL %s is newer than what cdcpub was tested with (%d to %d)", server.Version, oldest, newest).
			cured("look for a newer cdcpub, and test it with your load before you rely on it")
	}
	var known []string
	upgrade := 0
	for _, defect := range defects {
		if fixed, affected := defect.fixed[major]; affected && minor < fixed {
			known = append(known, fmt.Sprintf("%s (fixed in %d.%d)", defect.what, major, fixed))
			upgrade = fixed
		}
	}
	if len(known) == 0 {
		return ok("PostgreSQL %s; no defect of logical decoding is known that matters here", server.Version)
	}
	return warn("PostgreSQL %s has known defects of logical decoding: %s", server.Version, strings.Join(known, "; ")).
		cured(fmt.Sprintf("install the newest minor version, %d.%d or later; it needs a restart only", major, upgrade))
}
