package docs_test

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Links to files and headings of the repository must lead there. Other sites
// are not asked.
func TestLinksLeadSomewhere(t *testing.T) {
	all := documents(t)
	checked := 0
	for from, document := range all {
		for _, target := range document.links {
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			checked++
			file, fragment, hasFragment := strings.Cut(target, "#")
			to := from
			if file != "" {
				to = path.Join(path.Dir(from), file)
			}
			if strings.HasPrefix(to, "..") {
				t.Errorf("%s links to %s, outside of the repository", from, target)
				continue
			}
			if _, err := os.Stat(filepath.Join(repository, to)); err != nil {
				t.Errorf("%s links to %s: %v", from, target, err)
				continue
			}
			if hasFragment && (all[to] == nil || !slices.Contains(all[to].anchors, fragment)) {
				t.Errorf("%s links to %s, and there is no such heading", from, target)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d links were found", checked)
	}
}

// Nobody finds a page that nothing leads to.
func TestEveryPageCanBeReachedFromTheReadme(t *testing.T) {
	all := documents(t)
	reached := map[string]bool{}
	var follow func(string)
	follow = func(from string) {
		if reached[from] || all[from] == nil {
			return
		}
		reached[from] = true
		for _, target := range all[from].links {
			file, _, _ := strings.Cut(target, "#")
			if file != "" && !strings.Contains(file, "://") {
				follow(path.Join(path.Dir(from), file))
			}
		}
	}
	follow("README.md")
	for page := range all {
		if strings.HasPrefix(page, "docs/") && !reached[page] {
			t.Errorf("no way of links leads from README.md to %s", page)
		}
	}
}
