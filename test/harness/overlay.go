package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Edit replaces a piece of the text of a source file, named from the module's
// root. It must occur exactly once.
type Edit struct{ File, Old, New string }

// Overlay makes the edits of a mutant in copies of the files, and returns the
// file for BuildOptions.Overlay that names them. It goes with the test.
func Overlay(t testing.TB, mutant string, edits []Edit) string {
	t.Helper()
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	sources := map[string][]byte{}
	for _, e := range edits {
		path := filepath.Join(root, e.File)
		source, ok := sources[path]
		if !ok {
			if source, err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		if n := bytes.Count(source, []byte(e.Old)); n != 1 {
			t.Fatalf("%s: the text to replace occurs %d times; bring the mutant %q up to date:\n%s", e.File, n, mutant, e.Old)
		}
		sources[path] = bytes.Replace(source, []byte(e.Old), []byte(e.New), 1)
	}
	replace := map[string]string{}
	for path, source := range sources {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(replace[path], source, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "overlay.json")
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(file, content, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return file
}
