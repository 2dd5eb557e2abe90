package golden

import (
	"os"
	"path/filepath"
	"testing"
)

// recorder is a test that notes whether it would have failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestCompareFailsOnADifferenceAlone(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("testdata", "x.txt"), []byte("as it is\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text, fails := range map[string]bool{"as it is\n": false, "as it is": true, "": true} {
		r := &recorder{TB: t}
		Compare(r, "x.txt", []byte(text))
		if r.failed != fails {
			t.Errorf("%q: failed %v", text, r.failed)
		}
	}
}
