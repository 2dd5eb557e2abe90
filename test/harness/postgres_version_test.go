package harness_test

import (
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

func TestASubtestsNameChoosesTheVersionOfPostgreSQL(t *testing.T) {
	t.Setenv(harness.VersionVariable, "17")
	for name, want := range map[string]string{
		"TestX":                                 "17",
		"TestX/PostgreSQL_14":                   "14",
		"TestX/PostgreSQL_15/TestY/sub/subsub":  "15",
		"TestX/PostgreSQL_18_and_others":        "17",
		"TestPostgreSQL_14/sub":                 "17",
		"TestX/not_PostgreSQL_14/sub":           "17",
		"TestX/PostgreSQL_14/PostgreSQL_16/sub": "14",
	} {
		if got := harness.PostgresVersion(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	t.Run("PostgreSQL_16", func(t *testing.T) {
		for _, server := range []int{shared.Postgres(t, "").Installation().Major, harness.Postgres(t, "").Installation().Major} {
			if server != 16 {
				t.Errorf("PostgreSQL %d runs, want 16", server)
			}
		}
	})
}
