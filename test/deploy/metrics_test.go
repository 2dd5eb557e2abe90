package deploy_test

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// exposition is what cdcpub exports, by metric: the labels that it was seen with.
type exposition map[string]map[string]bool

var (
	sampleLine = regexp.MustCompile(`(?m)^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$`)
	labelPair  = regexp.MustCompile(`(\w+)="(?:[^"\\]|\\.)*"`)
	typeLine   = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)
)

// exported reads the goldens of the collector.
func exported(t *testing.T) exposition {
	t.Helper()
	all := exposition{}
	note := func(metric string, labels ...string) {
		if all[metric] == nil {
			all[metric] = map[string]bool{}
		}
		for _, label := range labels {
			all[metric][label] = true
		}
	}
	err := filepath.WalkDir(goldens, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content := read(t, path)
		for _, match := range typeLine.FindAllStringSubmatch(content, -1) {
			note(match[1])
		}
		for _, match := range sampleLine.FindAllStringSubmatch(content, -1) {
			note(match[1])
			for _, pair := range labelPair.FindAllStringSubmatch(match[2], -1) {
				note(match[1], pair[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatalf("no exposition in %s", goldens)
	}
	return all
}

var (
	metricName = regexp.MustCompile(`\b(?:cdcpub|process|go)_[a-z0-9_]+\b`)
	selector   = regexp.MustCompile(`\b(cdcpub_[a-z0-9_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)\s*(?:=|!=|=~|!~)\s*(?:"[^"]*"|%q)`)
	quoted     = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// ofTheTarget are labels that the scrape adds.
var ofTheTarget = []string{"job", "instance", "publisher"}

// ofClientLibrary are metrics that the collectors of client_golang export, which
// a golden of ours cannot hold: their values change.
var ofClientLibrary = []string{
	"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds",
	"process_start_time_seconds", "go_memstats_heap_inuse_bytes", "go_goroutines",
}

// check reports metrics and labels of an expression that cdcpub does not export.
func (e exposition) check(t *testing.T, where, expr string) {
	t.Helper()
	for _, name := range metricName.FindAllString(quoted.ReplaceAllString(expr, `""`), -1) {
		if _, ok := e[name]; !ok && !slices.Contains(ofClientLibrary, name) {
			t.Errorf("%s: %s is not exported", where, name)
		}
	}
	for _, match := range selector.FindAllStringSubmatch(expr, -1) {
		for _, label := range matcher.FindAllStringSubmatch(match[2], -1) {
			if labels, ok := e[match[1]]; ok && !labels[label[1]] && !slices.Contains(ofTheTarget, label[1]) {
				t.Errorf("%s: %s has no label %s", where, match[1], label[1])
			}
		}
	}
}

func TestRulesUseMetricsThatExist(t *testing.T) {
	e := exported(t)
	for _, r := range rules(t) {
		name := r.Alert + r.Record
		e.check(t, name, r.Expr)
		for annotation, text := range r.Annotations {
			if strings.Contains(text, "| query") {
				for _, template := range quoted.FindAllString(text, -1) {
					e.check(t, name+" "+annotation, strings.Trim(template, `"`))
				}
			}
		}
	}
}

func TestRuleTestsUseMetricsThatExist(t *testing.T) {
	e := exported(t)
	for _, path := range ruleTests(t) {
		for _, match := range regexp.MustCompile(`series: '(.*?)'`).FindAllStringSubmatch(read(t, path), -1) {
			e.check(t, path, match[1])
		}
	}
}

func TestDashboardUsesMetricsThatExist(t *testing.T) {
	e := exported(t)
	d := loadDashboard(t)
	for where, expr := range d.expressions() {
		e.check(t, where, expr)
	}
	for _, v := range d.Templating.List {
		e.check(t, "variable "+v.Name, v.Definition)
	}
}
