package deploy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// rule is a recording rule or an alert rule.
type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal([]byte(read(t, rulesFile)), &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("no rules")
	}
	return all
}

func alerts(t *testing.T) []rule {
	t.Helper()
	return slices.DeleteFunc(rules(t), func(r rule) bool { return r.Alert == "" })
}

// constants reads the values of the constants of a type from their source.
func constants(t *testing.T, path, name string) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != name {
			return false
		}
		for _, expr := range spec.Values {
			value, err := strconv.Unquote(expr.(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, value)
		}
		return false
	})
	if len(values) == 0 {
		t.Fatalf("no %s in %s", name, path)
	}
	return values
}

func findingIDs(t *testing.T) []string { return constants(t, findingsFile, "FindingID") }

func TestPrometheusAcceptsTheRules(t *testing.T) {
	promtool(t, "check", "rules", rulesFile)
	promtool(t, "check", "config", scrapeFile)
}

// ruleTests are the files of unit tests for the rules.
func ruleTests(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(rulesTestGlob)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no %s: %v", rulesTestGlob, err)
	}
	return paths
}

func TestRulesAlertWhenTheyShould(t *testing.T) {
	promtool(t, append([]string{"test", "rules"}, ruleTests(t)...)...)
}

func TestEveryAlertHasAUnitTest(t *testing.T) {
	var tests strings.Builder
	for _, path := range ruleTests(t) {
		tests.WriteString(read(t, path))
	}
	for _, alert := range alerts(t) {
		if !regexp.MustCompile(`\b` + alert.Alert + `\b`).MatchString(tests.String()) {
			t.Errorf("%s is in no %s", alert.Alert, rulesTestGlob)
		}
	}
}

// selectsID finds the alerts of one finding, or of several.
var selectsID = regexp.MustCompile(`^(?:cdcpub:alert:raised|max by \([^)]*\) \((?:cdcpub:alert:raised|max_over_time\(cdcpub_slot_finding))\{id(=~|!~|!=|=)"([^"]*)"\}`)

// Each finding has exactly one alert that carries it on, and the alert for
// findings of newer releases excludes exactly those.
func TestEveryFindingHasOneAlert(t *testing.T) {
	carried := map[string][]string{}
	var excluded []string
	for _, alert := range alerts(t) {
		match := selectsID.FindStringSubmatch(alert.Expr)
		switch {
		case match == nil:
		case match[1] == "=":
			carried[match[2]] = append(carried[match[2]], alert.Alert)
		case match[1] == "!~":
			excluded = strings.Split(match[2], "|")
		default:
			t.Errorf("%s selects id%s%q", alert.Alert, match[1], match[2])
		}
	}
	ids := findingIDs(t)
	for _, id := range ids {
		if len(carried[id]) != 1 {
			t.Errorf("finding %s has the alerts %v, want one", id, carried[id])
		}
		if !slices.Contains(excluded, id) {
			t.Errorf("CdcpubOther does not exclude %s", id)
		}
	}
	for _, id := range excluded {
		if !slices.Contains(ids, id) {
			t.Errorf("CdcpubOther excludes %s, which is no finding", id)
		}
	}
	if len(carried) != len(ids) {
		t.Errorf("alerts for %d findings, want %d", len(carried), len(ids))
	}
}

// carriedOn is an expression whose labels have the severity already.
var carriedOn = regexp.MustCompile(`^(max by \(.*severity\) \()?cdcpub:alert:raised\{`)

// An alert carries the severity and id that cdcpub gave it, or its own.
func TestAlertsAreLabelledAndExplained(t *testing.T) {
	names := map[string]bool{}
	for _, alert := range alerts(t) {
		if names[alert.Alert] {
			t.Errorf("%s exists twice", alert.Alert)
		}
		names[alert.Alert] = true
		severity, own := alert.Labels["severity"]
		if carried := carriedOn.MatchString(alert.Expr); carried == own {
			t.Errorf("%s: carried on %t, severity of its own %t", alert.Alert, carried, own)
		}
		if own && severity != "warning" && severity != "critical" {
			t.Errorf("%s has severity %q", alert.Alert, severity)
		}
		if alert.Labels["component"] != "cdcpub" {
			t.Errorf("%s lacks the label component", alert.Alert)
		}
		for _, annotation := range []string{"summary", "description", "runbook_url"} {
			if alert.Annotations[annotation] == "" {
				t.Errorf("%s lacks %s", alert.Alert, annotation)
			}
		}
	}
}
