package scenarios

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const versionsDocument = "../../docs/versions.md"

var writeVersions = flag.Bool("write-versions", false, "write "+versionsDocument+" anew")

// noScenarios are tests of the tests.
var noScenarios = []string{"Main", "Chaos", "EveryVersion", "MutantsAreCaught", "MutantsTableIsUpToDate", "VersionsDocumentIsUpToDate",
	"ChaosReportKeepsOneLineOfEachSeed", "ChaosScheduleFollowsFromItsSeed", "ChaosKindsChooseSeeds", "GapsExcuseTheirRowsAlone", "ReducingLeavesWhatTheFailureNeeds"}

// planned says which scenario runs on which versions of PostgreSQL.
func planned() (map[string]map[string]bool, error) {
	plan := map[string]map[string]bool{}
	on := func(scenario string, versions ...string) {
		if plan[scenario] == nil {
			plan[scenario] = map[string]bool{}
		}
		for _, version := range versions {
			plan[scenario][version] = true
		}
	}
	tests, err := findTests()
	if err != nil {
		return nil, err
	}
	for name, own := range tests {
		if !slices.Contains(noScenarios, name) {
			on(name, own...)
		}
	}
	for name := range onVersions {
		on(name, everyVersion...)
	}
	for _, version := range everyVersion {
		for _, test := range again(version) {
			on(nameOf(test), version)
		}
	}
	return plan, nil
}

// findTests returns the tests of this package, without "Test", and on which
// versions each runs by itself: on the newest, or on those of the variable that
// it goes through.
func findTests() (map[string][]string, error) {
	tests := map[string][]string{}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declared := range parsed.Decls {
			f, ok := declared.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			own := []string{newest}
			for variable, several := range map[string][]string{"versions": versions, "everyVersion": everyVersion, "failoverVersions": failoverVersions} {
				if names(f.Body, variable) {
					own = several
				}
			}
			tests[strings.TrimPrefix(f.Name.Name, "Test")] = own
		}
	}
	return tests, nil
}

// names tells if a piece of source names a variable.
func names(source ast.Node, variable string) (found bool) {
	ast.Inspect(source, func(n ast.Node) bool {
		identifier, ok := n.(*ast.Ident)
		found = found || ok && identifier.Name == variable
		return !found
	})
	return found
}

// unplanned is an error if a scenario has run on a version of which the document
// does not know.
func unplanned() error {
	plan, err := planned()
	if err != nil {
		return err
	}
	verdicts.Lock()
	defer verdicts.Unlock()
	for scenario, versions := range verdicts.ended {
		for version := range versions {
			if !plan[scenario][version] && !slices.Contains(noScenarios, scenario) {
				return fmt.Errorf("scenario %s has run on PostgreSQL %s, which %s does not say: add it to a table in versions_test.go, or let its function name the variable with its versions", scenario, version, versionsDocument)
			}
		}
	}
	return nil
}

func TestVersionsDocumentIsUpToDate(t *testing.T) {
	plan, err := planned()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("# Versions of PostgreSQL\n\n" +
		"`make test` runs these scenarios (`test/scenarios`) against real servers: all of them on\n" +
		"the newest version, all whose outcome can depend on PostgreSQL on the oldest too, and\n" +
		"those in which the versions differ most on each. It ends with a table of this form that\n" +
		"says how they went. Besides, the faults of slots (`test/slots`) run on every version, and\n" +
		"the decoder reads bytes that every version sent (`wal/testdata`).\n\n" +
		"| scenario | " + strings.Join(everyVersion, " | ") + " |\n|---" + strings.Repeat("|:-:", len(everyVersion)) + "|\n")
	for _, scenario := range slices.Sorted(maps.Keys(plan)) {
		fmt.Fprintf(&b, "| %s |", scenario)
		for _, version := range everyVersion {
			if plan[scenario][version] {
				b.WriteString(" x")
			}
			b.WriteString(" |")
		}
		b.WriteString("\n")
	}
	if *writeVersions {
		if err := os.WriteFile(versionsDocument, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(versionsDocument)
	if err != nil {
		t.Fatal(err)
	}
	if string(committed) != b.String() {
		t.Errorf("%s is not what the tests do; write it anew with\n\tgo test ./test/scenarios -run TestVersionsDocumentIsUpToDate -write-versions", versionsDocument)
	}
}
