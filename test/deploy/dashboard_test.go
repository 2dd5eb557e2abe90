package deploy_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

type dashboard struct {
	UID           string  `json:"uid"`
	Title         string  `json:"title"`
	SchemaVersion int     `json:"schemaVersion"`
	Panels        []panel `json:"panels"`
	Annotations   struct {
		List []struct {
			Expr string `json:"expr"`
		} `json:"list"`
	} `json:"annotations"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID          int         `json:"id"`
	Type        string      `json:"type"`
	Title       string      `json:"title"`
	Description string      `json:"description"`
	Datasource  *datasource `json:"datasource"`
	Grid        struct{ X, Y, W, H int }
	GridPos     json.RawMessage `json:"gridPos"`
	Targets     []struct {
		Expr       string     `json:"expr"`
		RefID      string     `json:"refId"`
		Datasource datasource `json:"datasource"`
	} `json:"targets"`
}

type datasource struct {
	Type string `json:"type"`
	UID  string `json:"uid"`
}

type variable struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Definition string `json:"definition"`
}

func loadDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, dashboardFile)), &d); err != nil {
		t.Fatal(err)
	}
	for i := range d.Panels {
		p := &d.Panels[i]
		if err := json.Unmarshal(p.GridPos, &p.Grid); err != nil {
			t.Fatalf("panel %q: %v", p.Title, err)
		}
	}
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 36 || len(d.Panels) == 0 {
		t.Fatalf("not a dashboard of Grafana 10: uid %q, title %q, schemaVersion %d, %d panels", d.UID, d.Title, d.SchemaVersion, len(d.Panels))
	}
	return d
}

// expressions are all PromQL expressions, by where they are.
func (d dashboard) expressions() map[string]string {
	all := map[string]string{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			all[fmt.Sprintf("panel %d %q, query %s", p.ID, p.Title, target.RefID)] = target.Expr
		}
	}
	for i, annotation := range d.Annotations.List {
		all[fmt.Sprintf("annotation %d", i)] = annotation.Expr
	}
	return all
}

var useOfVariable = regexp.MustCompile(`\$\{?(\w+)\}?`)

// Prometheus itself parses every expression, as the expression of a rule.
func TestPrometheusAcceptsTheDashboardsExpressions(t *testing.T) {
	values := strings.NewReplacer("$__rate_interval", "5m", "$server", "db", "$slot", "s", "$job", "cdcpub", "$instance", "a:9477")
	type record struct {
		Record string            `yaml:"record"`
		Expr   string            `yaml:"expr"`
		Labels map[string]string `yaml:"labels"`
	}
	var records []record
	for where, expr := range loadDashboard(t).expressions() {
		if expr == "" {
			t.Errorf("%s has no expression", where)
		}
		records = append(records, record{"x", values.Replace(expr), map[string]string{"where": where}})
	}
	file, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": records}}})
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", write(t, "dashboard.yml", string(file)))
}

func TestDashboardUsesItsVariables(t *testing.T) {
	d := loadDashboard(t)
	known := []string{"__rate_interval", "__value"}
	used := map[string]bool{}
	for _, v := range d.Templating.List {
		known = append(known, v.Name)
	}
	for _, match := range useOfVariable.FindAllStringSubmatch(read(t, dashboardFile), -1) {
		used[match[1]] = true
		if !slices.Contains(known, match[1]) && match[1] != "__all" {
			t.Errorf("variable %s does not exist", match[0])
		}
	}
	for _, name := range []string{"datasource", "server", "slot", "job", "instance"} {
		if !slices.Contains(known, name) || !used[name] {
			t.Errorf("variable %s: defined %t, used %t", name, slices.Contains(known, name), used[name])
		}
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			if target.Datasource.UID != "${datasource}" || p.Datasource.UID != "${datasource}" {
				t.Errorf("panel %q does not ask the chosen data source", p.Title)
			}
		}
	}
}

func TestDashboardPanelsAreUniqueExplainedAndDoNotOverlap(t *testing.T) {
	const columns = 24
	panels := loadDashboard(t).Panels
	taken := map[[2]int]string{}
	ids := map[int]string{}
	for _, p := range panels {
		if other, twice := ids[p.ID]; twice || p.ID < 1 {
			t.Errorf("panels %q and %q have the id %d", other, p.Title, p.ID)
		}
		ids[p.ID] = p.Title
		if p.Title == "" || p.Type != "row" && (p.Description == "" || len(p.Targets) == 0) {
			t.Errorf("panel %d %q lacks title, description or queries", p.ID, p.Title)
		}
		g := p.Grid
		if g.X < 0 || g.Y < 0 || g.W < 1 || g.H < 1 || g.X+g.W > columns {
			t.Errorf("panel %q is outside of the grid: %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other, is := taken[[2]int{x, y}]; is {
					t.Fatalf("panels %q and %q overlap", other, p.Title)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
