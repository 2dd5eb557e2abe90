package docs_test

import (
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

// command is a call of cdcpub that a document shows.
type command struct {
	// args follow the name of the program.
	args []string
	// built: it is to be run as `go run ./cmd/cdcpub`.
	built bool
	// span: it stands within the text, not in a block of code.
	span    bool
	section string
	text    string
}

const fromSource = "go run ./cmd/cdcpub "

var (
	// assignments stand before a command and set its environment.
	assignments = regexp.MustCompile(`^(?:[A-Z_]+=\S+ +)+`)
	// optional are the parts in brackets of a synopsis.
	optional = regexp.MustCompile(` ?\[[^\]]*\]`)
	// remainder is what a shell does with a command and its output.
	remainder = regexp.MustCompile(` *(?:;|\||>|\s#).*$`)
	word      = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)
)

// commands are those of a document, blocks before spans. A block counts if it is
// indented or of a shell.
func (d *document) commands() []command {
	var all []command
	add := func(line, section string, span bool) {
		line = assignments.ReplaceAllString(strings.TrimPrefix(strings.TrimSpace(line), "$ "), "")
		rest, built := strings.CutPrefix(line, fromSource)
		if !built {
			var ours bool
			if rest, ours = strings.CutPrefix(line, "cdcpub "); !ours {
				return
			}
		}
		rest = optional.ReplaceAllString(remainder.ReplaceAllString(rest, ""), "")
		if strings.Contains(rest, "...") { // a mention of several
			return
		}
		c := command{built: built, span: span, section: section, text: line}
		for _, w := range word.FindAllString(rest, -1) {
			c.args = append(c.args, strings.Trim(w, `'"`))
		}
		all = append(all, c)
	}
	for _, b := range d.blocks {
		if b.info != "" && b.info != "sh" && b.info != "bash" {
			continue
		}
		for line := range strings.Lines(strings.ReplaceAll(b.text, "\\\n", " ")) {
			add(line, b.section, false)
		}
	}
	for _, s := range d.spans {
		add(s, "", true)
	}
	return all
}

// What people are told to type must be what the program understands.
func TestCommandsInDocumentsParse(t *testing.T) {
	binary := shared.Binary(t, harness.BuildOptions{})
	all := documents(t)
	tried := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(all)) {
		for _, c := range all[path].commands() {
			line := strings.Join(c.args, " ")
			if tried[line] {
				continue
			}
			tried[line] = true
			args := append(slices.Clone(c.args), "--help")
			if out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "Usage: cdcpub ") {
				t.Errorf("%s shows %q, which does not parse: %v\n%s", path, c.text, err, out)
			}
		}
	}
	if len(tried) < 20 {
		t.Errorf("only %d commands were found", len(tried))
	}
}

func TestCommandsAreFoundInMarkdown(t *testing.T) {
	d := parse("# S\n\n    $ cdcpub slot status; echo $?\n    ...\n    cdcpub run -c a.yaml   # comment\n\n    go run ./cmd/cdcpub demo --events 5\n\n" +
		"```sh\nA=b C='d' cdcpub slot takeover x --from \"Debezium Streaming\"\n```\n\n```yaml\ncdcpub no\n```\n\n" +
		"Text `cdcpub slot list [NAME]`, `cdcpub slot ...`, `X_Y=z cdcpub\ninit` and `cdcpub_metric`.\n")
	var got []string
	for _, c := range d.commands() {
		got = append(got, strings.Join(c.args, "|"))
	}
	want := []string{"slot|status", "run|-c|a.yaml", "demo|--events|5", "slot|takeover|x|--from|Debezium Streaming", "slot|list", "init"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
