package docs_test

import (
	"encoding"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/internal/config"
)

//go:generate go test . -run TestConfigurationReferenceIsThatOfTheCode -update

var update = flag.Bool("update", false, "write docs/configuration.md anew")

const referenceFile = "docs/configuration.md"

func TestConfigurationReferenceIsThatOfTheCode(t *testing.T) {
	want := configurationReference(t)
	if *update {
		if err := os.WriteFile(filepath.Join(repository, referenceFile), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := read(t, referenceFile); got != want {
		t.Errorf("%s is not what the code says; write it anew with: go generate ./test/docs\n%s", referenceFile, firstDifference(got, want))
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is %q, want %q", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("it has %d lines, want %d", len(a), len(b))
}

// What is required is what Load misses in an empty configuration.
func TestReferenceKnowsWhatIsRequired(t *testing.T) {
	var missing []string
	_, err := config.Load("", nil)
	problems, ok := err.(*config.Problems)
	if !ok {
		t.Fatal(err)
	}
	for _, problem := range problems.List {
		missing = append(missing, problem.Path)
	}
	var marked []string
	for _, s := range settings(t) {
		if s.isRequired() {
			marked = append(marked, s.path)
		}
	}
	slices.Sort(missing)
	slices.Sort(marked)
	if !slices.Equal(missing, marked) {
		t.Errorf("the doc comments say that %q are required, Load that %q are", marked, missing)
	}
}

// setting is one key, or a group of keys, of the configuration.
type setting struct {
	path  string
	group bool
	// pair: a group of a warning and a critical threshold, explained as one.
	pair  bool
	value reflect.Value
	// owner is the struct that has the field, and name the field in it.
	owner, name string
}

// settings lists the fields of the struct as its yaml tags name them, groups
// before what is in them.
func settings(t *testing.T) []setting {
	var all []setting
	var walk func(group reflect.Value, path string)
	walk = func(group reflect.Value, path string) {
		for i := range group.NumField() {
			field := group.Type().Field(i)
			key := field.Tag.Get("yaml")
			if key == "" {
				continue
			}
			s := setting{path: strings.TrimPrefix(path+"."+key, "."), value: group.Field(i), owner: typeName(group.Type()), name: field.Name}
			_, text := s.value.Addr().Interface().(encoding.TextUnmarshaler)
			s.group = s.value.Kind() == reflect.Struct && !text
			s.pair = s.group && typeName(s.value.Type()) == "Limit"
			all = append(all, s)
			if s.group {
				walk(s.value, s.path)
			}
		}
	}
	walk(reflect.ValueOf(config.Default()).Elem(), "")
	if len(all) < 50 {
		t.Fatalf("the configuration has only %d settings", len(all))
	}
	return all
}

// typeName is the name of a type without its package and type arguments.
func typeName(t reflect.Type) string {
	name, _, _ := strings.Cut(t.Name(), "[")
	return name
}

func (s setting) isRequired() bool {
	return !s.group && s.value.IsZero() && strings.Contains(docs[s.owner][s.name], "required")
}

// variable is the environment variable of the setting, empty if there is none.
func (s setting) variable() string {
	if s.value.Kind() == reflect.Map && s.value.Type().Elem().Kind() == reflect.Struct {
		return ""
	}
	return "CDCPUB_" + strings.ToUpper(strings.ReplaceAll(s.path, ".", "_"))
}

// kinds are words for types that have no list of values.
var kinds = map[string]string{
	"string": "text", "[]string": "list", "int": "number", "bool": "`true` or `false`",
	"config.Size": "size", "config.Duration": "duration", "config.Ratio": "share", "config.Count": "number",
	"config.ConnString": "connection string", "[]config.ConnString": "list of connection strings",
	"config.SecretURL": "URL, kept secret", "[]config.SecretURL": "list of URLs, kept secret", "config.Secret": "text, kept secret",
	"[]config.Table": "list of tables", "config.Headers": "map, header to column", "config.Topics": "map, aggregate type to topic",
	"config.TopicConfigs": "map, setting to value", "map[string]config.MonitorLimits": "map, slot to limits",
}

func (s setting) kind(t *testing.T) string {
	if values := constants[typeName(s.value.Type())]; len(values) > 0 && s.value.Kind() == reflect.String {
		list := "`" + strings.Join(values, "`, `") + "`"
		return strings.Replace(list, "``", "`\"\"`", 1)
	}
	kind, known := kinds[s.value.Type().String()]
	if !known {
		t.Errorf("%s: say in this test's kinds what a %s is for readers", s.path, s.value.Type())
	}
	return kind
}

// preset is the default as the file would state it.
func (s setting) preset() string {
	if s.isRequired() {
		return "required"
	}
	return "`" + literal(s.value) + "`"
}

func literal(v reflect.Value) string {
	if text, ok := v.Addr().Interface().(encoding.TextMarshaler); ok && v.Kind() != reflect.String {
		b, _ := text.MarshalText()
		return string(b)
	}
	switch v.Kind() {
	case reflect.String:
		if v.Len() == 0 {
			return `""`
		}
		return v.String()
	case reflect.Map:
		if v.Len() == 0 {
			return "{}"
		}
	case reflect.Slice:
		if headers, ok := v.Interface().(config.Headers); ok {
			var pairs []string
			for _, h := range headers {
				pairs = append(pairs, h.Name+": "+h.Column)
			}
			return "{" + strings.Join(pairs, ", ") + "}"
		}
		if v.Len() == 0 {
			return "[]"
		}
	}
	return fmt.Sprint(v.Interface())
}
