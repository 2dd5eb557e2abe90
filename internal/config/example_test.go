package config

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const exampleFile = "../../cdcpub.example.yaml"

func required() map[string]bool {
	return map[string]bool{"postgres.url": true, "postgres.slot": true, "postgres.publication": true,
		"outbox.tables": true, "kafka.brokers": true}
}

func TestExampleHasEveryDefaultAndExamplesOfWhatIsRequired(t *testing.T) {
	got, err := Load(exampleFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	defaults := map[string]field{}
	for _, f := range leaves(want, "") {
		defaults[f.path] = f
	}
	for _, f := range leaves(got, "") {
		switch {
		case !got.Stated(f.path):
			t.Errorf("the example lacks %s", f.path)
		case required()[f.path] != defaults[f.path].value.IsZero() && required()[f.path]:
			t.Errorf("%s is required and has a default", f.path)
		case required()[f.path]:
			defaults[f.path].value.Set(f.value)
		}
	}
	assertSameValues(t, got, want)
}

func TestExampleExplainsEverySettingInStructOrder(t *testing.T) {
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	var found []string
	var walk func(n *yaml.Node, path string, known map[string]bool, pair bool)
	walk = func(n *yaml.Node, path string, known map[string]bool, pair bool) {
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			here := join(path, key.Value)
			if !known[here] {
				walk(n.Content[i+1], here, known, known[here+".warning"] && key.HeadComment != "")
				continue
			}
			found = append(found, here)
			// Both thresholds of a limit have one explanation.
			if key.HeadComment == "" && !pair {
				t.Errorf("%s is not explained", here)
			}
			if required()[here] != strings.HasPrefix(key.HeadComment, "# Required. ") {
				t.Errorf("the comment of %s is wrong about whether it is required", here)
			}
		}
	}
	known := map[string]bool{}
	var order []string
	for _, f := range leaves(Default(), "") {
		known[f.path], order = true, append(order, f.path)
	}
	walk(document.Content[0], "", known, false)
	if got, want := strings.Join(found, "\n"), strings.Join(order, "\n"); got != want {
		t.Errorf("settings of the example:\n%s\nof the struct:\n%s", got, want)
	}
}

func TestReadmeEmbedsTheExample(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(exampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "```yaml\n"+string(text)+"```\n") {
		t.Error("README.md lacks the text of cdcpub.example.yaml in a yaml block")
	}
}
