package config

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files in testdata/problems anew")

// Each testdata/problems/NAME.yaml has its expected problems in NAME.txt and,
// in lines that begin with "#env ", environment variables.
func TestAllProblemsAreReportedAtOnce(t *testing.T) {
	files, err := filepath.Glob("testdata/problems/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var env []string
			for line := range strings.Lines(string(text)) {
				if variable, ok := strings.CutPrefix(line, "#env "); ok {
					env = append(env, strings.TrimSpace(variable))
				}
			}
			_, err = parse("c.yaml", text, env, NeedStream)
			var problems *Problems
			if !errors.As(err, &problems) {
				t.Fatalf("error %v is not *Problems", err)
			}
			compareGolden(t, strings.TrimSuffix(file, ".yaml")+".txt", problems.Error()+"\n")
		})
	}
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("problems differ from %s\ngot:\n%swant:\n%s", path, got, want)
	}
}

func TestValidateWithoutAFileNamesThePathAlone(t *testing.T) {
	c := mustParse(t, minimal)
	c.origins, c.file = nil, ""
	c.Window.Records = 0
	if got, want := c.Validate().Error(), "window.records: must be at least 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Keys are unique in a file and in a variable, so only a Config that was not
// loaded can have such headers.
func TestHeaderNamesAreUnique(t *testing.T) {
	c := mustParse(t, minimal)
	c.origins, c.file = nil, ""
	c.Outbox.Headers = Headers{{"a", "event_id"}, {"b", "x"}, {"a", "y"}}
	err := c.Validate()
	if want := "outbox.headers.a: is stated twice"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestNearestFindsMisspellingsOnly(t *testing.T) {
	names := []string{"url", "password_file", "slot", "batch_bytes", "linger"}
	for typed, want := range map[string]string{
		"slto": "slot", "URL": "url", "batch-bytes": "batch_bytes", "batchBytes": "batch_bytes",
		"password": "password_file", "lingre": "linger", "retries": "", "x": "", "": "",
	} {
		if got := nearest(typed, names); got != want {
			t.Errorf("nearest(%q) = %q, want %q", typed, got, want)
		}
	}
}
