package docs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/internal/config"
)

// required are the variables of what every configuration must have, the last
// part of its key and a value.
var required = map[string]struct{ key, value string }{
	"CDCPUB_POSTGRES_URL":         {"url", "postgres://cdcpub@localhost/shop"},
	"CDCPUB_POSTGRES_SLOT":        {"slot", "cdcpub"},
	"CDCPUB_POSTGRES_PUBLICATION": {"publication", "cdcpub"},
	"CDCPUB_OUTBOX_TABLES":        {"tables", "public.outbox"},
	"CDCPUB_KAFKA_BROKERS":        {"brokers", "localhost:9092"},
}

// Whatever a document shows of a configuration is right as far as it goes.
func TestConfigurationsInDocumentsAreValid(t *testing.T) {
	var groups []string
	for _, s := range settings(t) {
		if !strings.Contains(s.path, ".") {
			groups = append(groups, s.path+":")
		}
	}
	found := 0
	for path, document := range documents(t) {
		for _, b := range document.blocks {
			first, _, _ := strings.Cut(strings.TrimLeft(withoutComments(b.text), "\n"), "\n")
			if b.info != "" && b.info != "yaml" || !slices.Contains(groups, strings.TrimSpace(first)) {
				continue
			}
			found++
			file := filepath.Join(t.TempDir(), "cdcpub.yaml")
			if err := os.WriteFile(file, []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
			// A part of a file need not have what a whole one must.
			var env []string
			for variable, missing := range required {
				if !strings.Contains(b.text, missing.key+":") {
					env = append(env, variable+"="+missing.value)
				}
			}
			if _, err := config.Load(file, env); err != nil {
				t.Errorf("%s shows a configuration with a problem: %v\n%s", path, err, b.text)
			}
		}
	}
	if found < 3 {
		t.Errorf("only %d configurations were found", found)
	}
}

func withoutComments(yaml string) string {
	var kept strings.Builder
	for line := range strings.Lines(yaml) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
