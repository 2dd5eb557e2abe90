// Package test holds what is true of the repository as a whole.
package test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
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
	"wal":                     {},
	"checkpoint":              {},
	"router":                  {"wal"},
	"internal/config":         {},
	"internal/pipeline":       {"wal", "router", "checkpoint"},
	"internal/kafka":          {"internal/pipeline", "router"},
	"internal/publisher":      {"wal", "router", "checkpoint", "internal/pipeline"},
	"internal/admin":          {"internal/publisher"},
	"internal/provision":      {},
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
	"github.com/jackc/pgx/v5":       {"internal/provision", "internal/witness", "internal/demo", "cmd/cdcpub", "test/harness"},
	"go.uber.org/zap":               {"internal/kafka", "internal/publisher", "cmd/cdcpub"},
	"github.com/twmb/franz-go":      {"internal/witness", "internal/demo", "test/harness"},
	"github.com/fergusstrange":      {"internal/pgserver"},
	"go.yaml.in/yaml/v3":            {"internal/config"},
	"github.com/cenkalti/backoff":   {"internal/publisher"},
	"github.com/alecthomas/kong":    {"cmd/cdcpub"},
	"github.com/dustin/go-humanize": {"internal/config", "internal/demo"},
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

// The pure parts have no context, clock of their own, logger or goroutine to
// hide behind.
func TestPurePackagesImportNoEffects(t *testing.T) {
	for _, p := range packages(t, "./checkpoint", "./router", "./internal/verify") {
		for _, effect := range []string{"context", "net", "os", "sync", "log", "math/rand", "math/rand/v2"} {
			if slices.Contains(p.Imports, effect) {
				t.Errorf("%s imports %s", p.ImportPath, effect)
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
