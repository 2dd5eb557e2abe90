// Package test holds what is true of the repository as a whole.
package test

import (
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/cdcpub/cdcpub/"

type listed struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T, args ...string) []listed {
	command := exec.Command("go", append([]string{"list", "-json=ImportPath,Imports"}, args...)...)
	command.Dir = ".."
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var all []listed
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// allowed says which of our packages a package may import. The arrows point one
// way: commands, publisher, pipeline, and the pure parts that know nothing of
// each other.
var allowed = map[string][]string{
	"wal":                     {"internal/pgfault", "internal/hedge", "internal/pause"},
	"checkpoint":              {},
	"router":                  {"wal"},
	"slotmon":                 {"internal/human"},
	"internal/human":          {},
	"internal/pause":          {},
	"internal/hedge":          {},
	"internal/golden":         {},
	"internal/pgfault":        {"internal/human", "internal/peercert"},
	"internal/spelling":       {},
	"internal/latency":        {},
	"internal/config":         {"internal/spelling"},
	"internal/pipeline":       {"wal", "router", "checkpoint"},
	"internal/kafka":          {"internal/pipeline", "router", "internal/latency", "internal/peercert", "internal/pause", "internal/hedge"},
	"internal/publisher":      {"wal", "router", "checkpoint", "internal/human", "internal/pipeline"},
	"internal/monitor":        {"slotmon"},
	"internal/notify":         {"slotmon"},
	"internal/metrics":        {"slotmon", "internal/monitor", "internal/publisher", "internal/kafka", "internal/latency"},
	"internal/page":           {"slotmon", "internal/monitor", "internal/publisher", "internal/latency"},
	"internal/admin":          {"internal/publisher", "internal/monitor"},
	"internal/slotview":       {"slotmon", "internal/human", "internal/spelling"},
	"internal/slotctl":        {"slotmon", "internal/spelling"},
	"internal/check":          {"wal", "router", "slotmon", "internal/human"},
	"internal/provision":      {"internal/slotctl", "internal/human"},
	"internal/peercert":       {},
	"internal/verify":         {},
	"internal/witness":        {"internal/verify"},
	"internal/pgserver":       {"internal/pgserver/guard"},
	"internal/pgserver/guard": {},
	"internal/demo":           {"internal/config", "internal/pgserver", "internal/provision", "internal/verify", "internal/witness", "internal/publisher"},
}

func TestImportsPointOneWay(t *testing.T) {
	for _, p := range packages(t, "./...") {
		name := strings.TrimPrefix(p.ImportPath, module)
		if strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "test") {
			continue
		}
		may, known := allowed[name]
		if !known {
			t.Errorf("package %s is not in the list of this test: say what it may import", name)
		}
		for _, imported := range p.Imports {
			if ours, ok := strings.CutPrefix(imported, module); ok && !slices.Contains(may, ours) {
				t.Errorf("%s imports %s", name, ours)
			}
		}
	}
}

// sole lists packages that only some of ours may import.
var sole = map[string][]string{
	"github.com/IBM/sarama":         {"internal/kafka"},
	"github.com/jackc/pgx/v5":       {"internal/provision", "internal/slotctl", "internal/check", "slotmon", "internal/witness", "internal/demo", "cmd/cdcpub", "test/harness"},
	"go.uber.org/zap":               {"internal/kafka", "internal/publisher", "internal/notify", "cmd/cdcpub"},
	"github.com/twmb/franz-go":      {"internal/witness", "internal/demo", "test/harness"},
	"github.com/fergusstrange":      {"internal/pgserver"},
	"go.yaml.in/yaml/v3":            {"internal/config"},
	"github.com/cenkalti/backoff":   {"internal/publisher", "internal/notify"},
	"github.com/alecthomas/kong":    {"cmd/cdcpub"},
	"github.com/dustin/go-humanize": {"internal/config", "internal/demo", "internal/human"},
	"github.com/prometheus":         {"internal/metrics"},
}

func TestDependenciesStayWhereTheyBelong(t *testing.T) {
	for _, p := range packages(t, "./...") {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, imported := range p.Imports {
			for dependency, users := range sole {
				exact := imported == dependency || strings.HasPrefix(imported, dependency+"/") && dependency != "github.com/jackc/pgx/v5"
				if exact && !slices.Contains(users, name) {
					t.Errorf("%s imports %s", name, imported)
				}
			}
		}
	}
}

// effects are what pure code has no context, clock of its own, logger or
// goroutine to hide behind.
var effects = []string{"context", "net", "os", "sync", "log", "math/rand", "math/rand/v2"}

func TestPurePackagesImportNoEffects(t *testing.T) {
	for _, p := range packages(t, "./checkpoint", "./router", "./internal/verify", "./internal/latency", "./internal/human") {
		for _, effect := range effects {
			if slices.Contains(p.Imports, effect) {
				t.Errorf("%s imports %s", p.ImportPath, effect)
			}
		}
	}
}

// Judging slots is pure; only taking samples is not.
func TestJudgingSlotsImportsNoEffects(t *testing.T) {
	var files []string
	for _, pattern := range []string{"judge*.go", "series*.go", "alert*.go", "finding.go", "trend.go", "limits.go", "subject.go", "severity.go"} {
		found, err := filepath.Glob(filepath.Join("..", "slotmon", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range parsed.Imports {
			if path := strings.Trim(imported.Path.Value, `"`); slices.Contains(effects, path) || strings.Contains(path, "pgx") {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}

func TestReleaseBuildHasNoDemo(t *testing.T) {
	command := exec.Command("go", "list", "-deps", "-tags", "release", "./cmd/cdcpub")
	command.Dir = ".."
	out, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"kfake", "embedded-postgres", "internal/demo", "internal/verify", "internal/pgserver"} {
		if strings.Contains(string(out), part) {
			t.Errorf("the release build contains %s", part)
		}
	}
}
