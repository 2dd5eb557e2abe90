package deploy_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

// section is what stands under a heading of a document.
type section struct{ title, text string }

// block is fenced code.
type block struct {
	section  string
	language string
	// marks are the words behind the language: readonly, a PostgreSQL version.
	marks []string
	code  string
}

var (
	heading = regexp.MustCompile(`(?m)^##? (.*)$`)
	fence   = regexp.MustCompile("(?ms)^([ ]*)```(\\w+)([^\n]*)\n(.*?)^[ ]*```$")
	link    = regexp.MustCompile(`\]\(([^)\s]*)\)`)
	noWord  = regexp.MustCompile(`[^\w\- ]`)
)

// anchor is how GitHub makes one of a heading.
func anchor(title string) string {
	return strings.ReplaceAll(noWord.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

// sections splits a document; headings within fenced code are none.
func sections(document string) (all []section) {
	plain := fence.ReplaceAllStringFunc(document, func(code string) string { return strings.ReplaceAll(code, "#", "_") })
	marks := heading.FindAllStringSubmatchIndex(plain, -1)
	for i, mark := range marks {
		end := len(document)
		if i+1 < len(marks) {
			end = marks[i+1][0]
		}
		all = append(all, section{title: document[mark[2]:mark[3]], text: document[mark[1]:end]})
	}
	return all
}

func (s section) blocks() (all []block) {
	for _, match := range fence.FindAllStringSubmatch(s.text, -1) {
		all = append(all, block{
			section: s.title, language: match[2], marks: strings.Fields(match[3]),
			code: strings.TrimPrefix(strings.ReplaceAll("\n"+match[4], "\n"+match[1], "\n"), "\n"),
		})
	}
	return all
}

func anchors(t *testing.T, path string) (all []string) {
	t.Helper()
	for _, found := range everyHeading.FindAllStringSubmatch(read(t, path), -1) {
		all = append(all, anchor(found[1]))
	}
	return all
}

var everyHeading = regexp.MustCompile(`(?m)^##+ (.+)$`)

// The section of an alert is in a fixed form, so that one finds the cure at
// night without reading.
func TestEveryFindingAndEveryAlertHasASection(t *testing.T) {
	ids := findingIDs(t)
	for _, alert := range alerts(t) {
		if id, own := alert.Labels["id"]; own {
			ids = append(ids, id)
		}
	}
	all := sections(read(t, runbookFile))
	for _, id := range ids {
		i := slices.IndexFunc(all, func(s section) bool { return s.title == id })
		if i < 0 {
			t.Errorf("%s has no section", id)
			continue
		}
		at := -1
		for _, part := range []string{"**Meaning.** ", "**Confirm.**", "**Cure.**", "**Prevent.** "} {
			next := strings.Index(all[i].text, "\n"+part)
			if next <= at || strings.Count(all[i].text, "\n"+part) != 1 {
				t.Errorf("section %s: %q is missing, twice, or out of order", id, part)
			}
			at = next
		}
	}
}

func TestEveryAlertIsInTheRunbooksTable(t *testing.T) {
	row := regexp.MustCompile(`(?m)^\| (Cdcpub\w+) \| [^|]+ \| \[(\w+)\]\(#(\w+)\) \|$`)
	listed := map[string]string{}
	for _, match := range row.FindAllStringSubmatch(read(t, runbookFile), -1) {
		if match[2] != match[3] {
			t.Errorf("%s: the text %s leads to %s", match[1], match[2], match[3])
		}
		listed[match[1]] = match[3]
	}
	names := map[string]bool{}
	for _, alert := range alerts(t) {
		_, target, _ := strings.Cut(alert.Annotations["runbook_url"], "#")
		name := alert.Alert
		if listed[name] == "" {
			name = strings.TrimSuffix(name, "Unannounced") // in the row of the verdict
		}
		names[name] = true
		if listed[name] != target && name != "CdcpubOther" { // which leads to the table
			t.Errorf("%s leads to %q in the table and to %s in the rules", alert.Alert, listed[name], target)
		}
	}
	for name := range listed {
		if !names[name] {
			t.Errorf("the table has %s, which is no alert", name)
		}
	}
}

func TestEveryKindOfStallHasACure(t *testing.T) {
	all := sections(read(t, runbookFile))
	i := slices.IndexFunc(all, func(s section) bool { return s.title == "publisher_stalled" })
	_, cure, _ := strings.Cut(all[i].text, "**Cure.**")
	for _, kind := range constants(t, stallsFile, "StallKind") {
		if !strings.Contains(cure, "`"+kind+"`") {
			t.Errorf("publisher_stalled does not say what to do about %s", kind)
		}
	}
}

func TestEveryAlertIsInTheReadme(t *testing.T) {
	readme := read(t, rulesReadme)
	for _, alert := range alerts(t) {
		if !strings.Contains(readme, "`"+alert.Alert+"`") && !strings.HasSuffix(alert.Alert, "Unannounced") {
			t.Errorf("%s is not in %s", alert.Alert, rulesReadme)
		}
	}
}

func TestLinksToTheRunbookLeadSomewhere(t *testing.T) {
	const page = "https://github.com/cdcpub/cdcpub/blob/main/docs/runbook.md#"
	known := anchors(t, runbookFile)
	for _, alert := range alerts(t) {
		target, ok := strings.CutPrefix(alert.Annotations["runbook_url"], page)
		if !ok || !slices.Contains(known, target) {
			t.Errorf("%s: %q leads nowhere", alert.Alert, alert.Annotations["runbook_url"])
		}
		if id, own := alert.Labels["id"]; own && id != target {
			t.Errorf("%s has the id %s and leads to %s", alert.Alert, id, target)
		}
	}
}

func TestLinksInTheRunbookLeadSomewhere(t *testing.T) {
	for _, match := range link.FindAllStringSubmatch(read(t, runbookFile), -1) {
		path, target, _ := strings.Cut(match[1], "#")
		file := runbookFile
		if path != "" {
			file = filepath.Join(filepath.Dir(runbookFile), path)
		}
		if !slices.Contains(anchors(t, file), target) {
			t.Errorf("%s leads nowhere", match[1])
		}
	}
}

var inlineCommand = regexp.MustCompile("`(cdcpub [^`]*)`")

// Each command line of cdcpub in the runbook is one that cdcpub accepts; --help
// keeps it from doing anything.
func TestCommandsInTheRunbookExist(t *testing.T) {
	binary := shared.Binary(t, harness.BuildOptions{})
	lines := map[string]bool{}
	for _, s := range sections(read(t, runbookFile)) {
		for _, b := range s.blocks() {
			for line := range strings.Lines(b.code) {
				line, _, _ = strings.Cut(line, "  #")
				if b.language == "sh" && strings.HasPrefix(line, "cdcpub ") {
					lines[strings.TrimSpace(line)] = true
				}
			}
		}
		for _, match := range inlineCommand.FindAllStringSubmatch(s.text, -1) {
			lines[strings.Join(strings.Fields(match[1]), " ")] = true
		}
	}
	if len(lines) < 8 {
		t.Fatalf("only %d commands found", len(lines))
	}
	words := regexp.MustCompile(`"[^"]*"|\S+`)
	for line := range lines {
		var args []string
		for _, word := range words.FindAllString(line, -1)[1:] {
			args = append(args, strings.Trim(word, `"`))
		}
		command := exec.CommandContext(t.Context(), binary, append(args, "--help")...)
		if out, err := command.CombinedOutput(); err != nil || !strings.Contains(string(out), "Usage: cdcpub "+args[0]) {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}
