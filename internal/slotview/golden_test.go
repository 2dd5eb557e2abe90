package slotview

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/cdcpub/cdcpub/internal/golden"
	"github.com/cdcpub/cdcpub/slotmon"
)

func render(t *testing.T, write func(*bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func screen(t *testing.T, s *Status, style Style) string {
	t.Helper()
	return render(t, func(b *bytes.Buffer) error { return s.Screen(b, style) })
}

func TestScreens(t *testing.T) {
	for name, status := range cases() {
		t.Run(name, func(t *testing.T) {
			text := screen(t, status, Style{})
			golden.Compare(t, name+".txt", []byte(text))
			fitsTerminal(t, text)
			verdict, _, _ := strings.Cut(text, " ")
			if want := strings.ToUpper(status.Verdict.String()); verdict != want {
				t.Errorf("begins with %s, not with the verdict %s", verdict, want)
			}
			for _, finding := range status.Report.Findings {
				for _, word := range strings.Fields(finding.Summary + " " + finding.Cause + " " + finding.Cure) {
					if !strings.Contains(text, word) {
						t.Errorf("%s: %q is not shown", finding.ID, word)
					}
				}
			}
		})
	}
}

// fitsTerminal checks the width, but for lines that are one long word, and that
// nothing but text is in it.
func fitsTerminal(t *testing.T, text string) {
	t.Helper()
	if !strings.HasSuffix(text, "\n") {
		t.Error("the last line does not end")
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if n := utf8.RuneCountInString(line); n > width && !oneLongWord(line) {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.TrimRight(line, " ") != line {
			t.Errorf("ends in spaces: %q", line)
		}
		if i := strings.IndexFunc(line, unprintable); i >= 0 {
			t.Errorf("a control character at %d: %q", i, line)
		}
	}
}

// oneLongWord tells if a line is too long because a word that must not be
// broken fills it from where text begins.
func oneLongWord(line string) bool {
	words := strings.Fields(line)
	longest := 0
	for _, word := range words {
		longest = max(longest, utf8.RuneCountInString(word))
	}
	return longest > width-2*verdictWidth-10
}

func TestColorIsOnTheVerdictsAndChangesNothingElse(t *testing.T) {
	for name, status := range cases() {
		plain, colored := screen(t, status, Style{}), screen(t, status, Style{Color: true})
		if !strings.HasPrefix(colored, "\x1b[") {
			t.Errorf("%s: no color", name)
		}
		for _, sequence := range []string{"\x1b[32m", "\x1b[1;33m", "\x1b[1;31m", "\x1b[1;35m", "\x1b[0m"} {
			colored = strings.ReplaceAll(colored, sequence, "")
		}
		if colored != plain {
			t.Errorf("%s: differs without the color:\n%s", name, colored)
		}
	}
}

func TestDocumentsKeepTheirNames(t *testing.T) {
	for name, status := range cases() {
		text := render(t, func(b *bytes.Buffer) error { return status.JSON(b) })
		golden.Compare(t, name+".json", []byte(text))
		var document struct {
			Verdict slotmon.Severity `json:"verdict"`
			Name    string           `json:"name"`
		}
		if err := json.Unmarshal([]byte(text), &document); err != nil || document.Verdict != status.Verdict || document.Name != status.Name {
			t.Errorf("%s: %v %+v", name, err, document)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &members); err != nil {
			t.Fatal(err)
		}
		for _, list := range []string{"transactions", "standbys", "unseen"} {
			if !bytes.HasPrefix(members[list], []byte("[")) {
				t.Errorf("%s: %s is no list: %s", name, list, members[list])
			}
		}
	}
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// A standby that was promoted keeps the mark of a copy, without its meaning.
func TestAPromotedServerHasNoCopy(t *testing.T) {
	s := failover()
	s.Slot.Synced = pointer(true)
	s.Standbys[2].Not = "is not a standby: it is not in recovery"
	text := screen(t, s, Style{})
	if strings.Contains(text, "this is the copy") || !strings.Contains(text, "ready on 1 of") || !strings.Contains(text, "is not a standby") {
		t.Error(text)
	}
	server := *s.Server
	server.InRecovery = true
	s.Server = &server
	if text := screen(t, s, Style{}); !strings.Contains(text, "this is the copy of a failover slot") {
		t.Error(text)
	}
}
