package harness

import (
	"os"
	"regexp"
)

// VersionVariable names an environment variable with the version of PostgreSQL
// for tests that ask for none: CDCPUB_TEST_POSTGRES=16 go test ...
const VersionVariable = "CDCPUB_TEST_POSTGRES"

var versionElement = regexp.MustCompile(`/PostgreSQL_(\d+)(/|$)`)

// PostgresVersion is what a test of that name gets that asks for "" as its
// version. The name of a subtest can say so, for itself and its subtests: in
// TestX/PostgreSQL_14/Y it is 14. Otherwise it is what VersionVariable says, or
// "", the newest on the machine. So one test function can run on several
// versions.
func PostgresVersion(test string) string {
	if found := versionElement.FindStringSubmatch(test); found != nil {
		return found[1]
	}
	return os.Getenv(VersionVariable)
}
