// Package docs_test holds what people read to what is true: links lead
// somewhere, commands parse and do what the text says, and the reference of the
// configuration is that of the code.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

var shared harness.Shared

func TestMain(m *testing.M) { harness.Main(m, &shared) }

// repository is the module's root from here.
const repository = "../.."

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// documents are all Markdown files of the repository, by path from its root.
func documents(t *testing.T) map[string]*document {
	t.Helper()
	found := map[string]*document{}
	err := fs.WalkDir(os.DirFS(repository), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case !entry.IsDir() && strings.HasSuffix(path, ".md"):
			found[path] = parse(read(t, path))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"README.md", "docs/runbook.md"} {
		if found[path] == nil {
			t.Fatalf("%s is not among the %d Markdown files", path, len(found))
		}
	}
	return found
}
