package check

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/cdcpub/cdcpub/internal/golden"
)

// screens are what the golden files show.
var screens = map[string][]string{
	"ready": nil,
	"many-faults": {"no REPLICATION", "minor version with both defects", "no limit of WAL", "no inserts", "row filter", "two-phase",
		"key may be NULL", "version not unique", "unlogged", "advertises localhost", "topic missing", "min ISR 1"},
	"nothing-reachable": {"nobody listens", "no broker"},
}

func TestScreens(t *testing.T) {
	for name, names := range screens {
		t.Run(name, func(t *testing.T) {
			facts := ready()
			for _, fault := range names {
				faults[fault].make(facts)
			}
			report := NewReport(facts)
			var text, document bytes.Buffer
			if err := report.Text(&text, Style{}); err != nil {
				t.Fatal(err)
			}
			if err := report.JSON(&document); err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, name+".txt", text.Bytes())
			golden.Compare(t, name+".json", document.Bytes())
			fitsTerminal(t, report, text.String())
		})
	}
}

// fitsTerminal checks the width, but for commands, which are copied whole.
func fitsTerminal(t *testing.T, report *Report, text string) {
	t.Helper()
	commands := map[string]bool{}
	for _, r := range report.Checks {
		for _, command := range r.Commands {
			commands[command] = true
			if !strings.Contains(text, command) {
				t.Errorf("the command is not shown whole: %s", command)
			}
		}
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if utf8.RuneCountInString(line) > width && !commands[strings.TrimSpace(line)] {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
		if strings.TrimRight(line, " ") != line || strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) >= 0 {
			t.Errorf("%q", line)
		}
	}
}

func TestNamesOfOthersCannotSteerTheTerminal(t *testing.T) {
	facts := ready()
	faults["held by another"].make(facts)
	facts.ourSlot().Holder.ApplicationName = "x\x1b[2J\ny"
	var text bytes.Buffer
	if err := NewReport(facts).Text(&text, Style{}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(text.String(), "\x1b") {
		t.Errorf("%q", text.String())
	}
}
