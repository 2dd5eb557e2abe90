package compose

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// buildContext is a copy of all that Docker would send: what
// .dockerignore names, whole directories and files at the top, is left out.
func buildContext(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(root)
	must(t, err)
	context := t.TempDir()
	for _, e := range entries {
		if slices.Contains(ignored(t), e.Name()) {
			continue
		}
		from, to := filepath.Join(root, e.Name()), filepath.Join(context, e.Name())
		if e.IsDir() {
			err = os.CopyFS(to, os.DirFS(from))
		} else {
			var text []byte
			if text, err = os.ReadFile(from); err == nil {
				err = os.WriteFile(to, text, 0o644)
			}
		}
		must(t, err)
	}
	return context
}

func readModule(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	must(t, err)
	return regexp.MustCompile(`(?m)^go .*$`).FindString(string(text))
}

// version is the first version number in text.
func version(t *testing.T, text string) string {
	t.Helper()
	found := regexp.MustCompile(`[0-9]+\.[0-9]+(\.[0-9]+)?`).FindString(text)
	if found == "" {
		t.Fatalf("no version in %q", text)
	}
	return found
}

// newer compares version numbers part by part.
func newer(a, b string) bool {
	return slices.CompareFunc(strings.Split(a, "."), strings.Split(b, "."), func(x, y string) int {
		m, _ := strconv.Atoi(x) // version matched digits
		n, _ := strconv.Atoi(y)
		return cmp.Compare(m, n)
	}) > 0
}
