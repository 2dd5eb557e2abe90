package docs_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// document is what the tests want of a Markdown file.
type document struct {
	// anchors are the ids that GitHub gives to the headings.
	anchors []string
	// links are the targets of links and images.
	links []string
	// blocks are the blocks of code.
	blocks []block
	// spans are the pieces of code within the text, with line ends as spaces.
	spans []string
}

// block is a block of code, fenced or indented.
type block struct {
	// info is what stands after the fence: a language, perhaps more. It is
	// empty for an indented block.
	info string
	// section is the heading above it.
	section string
	text    string
}

var (
	fence   = regexp.MustCompile("^ *(```+)(.*)$")
	heading = regexp.MustCompile("^(#{1,6}) +(.*?) *#*$")
	link    = regexp.MustCompile(`!?\[[^\]]*\]\(([^()\s]+)\)`)
	span    = regexp.MustCompile("(?s)`([^`]+)`")
	item    = regexp.MustCompile(`^ *(?:[-*+]|[0-9]+\.) +`)
)

// parse reads the part of Markdown that this repository uses: headings with #,
// fenced and indented code, lists, inline links and code.
func parse(text string) *document {
	d := &document{}
	var prose strings.Builder
	section, lines := "", strings.Split(text, "\n")
	indent := 0 // of the list item that a line belongs to
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		after := i == 0 || strings.TrimSpace(lines[i-1]) == ""
		switch start := fence.FindStringSubmatch(line); {
		case start != nil:
			margin := len(line) - len(strings.TrimLeft(line, " "))
			end := i + 1
			for end < len(lines) && strings.TrimSpace(lines[end]) != start[1] {
				end++
			}
			d.blocks = append(d.blocks, block{info: strings.TrimSpace(start[2]), section: section, text: dedent(lines[i+1:min(end, len(lines))], margin)})
			i = end
		case after && strings.HasPrefix(line, strings.Repeat(" ", indent+4)) && strings.TrimSpace(line) != "":
			end := i
			for end < len(lines) && (strings.TrimSpace(lines[end]) == "" || strings.HasPrefix(lines[end], strings.Repeat(" ", indent+4))) {
				end++
			}
			d.blocks = append(d.blocks, block{section: section, text: strings.TrimRight(dedent(lines[i:end], indent+4), "\n") + "\n"})
			i = end - 1
		default:
			if h := heading.FindStringSubmatch(line); h != nil {
				section = h[2]
				d.anchors = append(d.anchors, anchor(h[2], d.anchors))
			}
			if m := item.FindString(line); m != "" {
				indent = len(m)
			} else if line != "" && line[0] != ' ' {
				indent = 0
			}
			prose.WriteString(line + "\n")
		}
	}
	for _, m := range span.FindAllStringSubmatch(prose.String(), -1) {
		d.spans = append(d.spans, strings.Join(strings.Fields(m[1]), " "))
	}
	for _, m := range link.FindAllStringSubmatch(span.ReplaceAllString(prose.String(), "`"), -1) {
		d.links = append(d.links, m[1])
	}
	return d
}

func dedent(lines []string, margin int) string {
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(line[min(margin, len(line)-len(strings.TrimLeft(line, " "))):] + "\n")
	}
	return text.String()
}

// anchor is the id that GitHub gives to a heading: lower case, spaces as
// hyphens, without punctuation, numbered when it is there already.
func anchor(heading string, taken []string) string {
	heading = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(heading, "$1")
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
	for unique, i := id, 1; ; i++ {
		if !slices.Contains(taken, unique) {
			return unique
		}
		unique = fmt.Sprintf("%s-%d", id, i)
	}
}

func TestMarkdownIsReadAsGitHubDoes(t *testing.T) {
	d := parse("# A `b.c` d-e_f!\n\ntext `x y\nz` [here](a.md#b) ![i](p.png)\n\n    indented\n\n    more\n\n" +
		"1. item\n\n       in item\n   still text\n\n   ```sh\n   fenced [no](link)\n   ```\n\n## Same\n## Same\n")
	for what, c := range map[string]struct{ got, want any }{
		"anchors": {d.anchors, []string{"a-bc-d-e_f", "same", "same-1"}},
		"links":   {d.links, []string{"a.md#b", "p.png"}},
		"spans":   {d.spans, []string{"b.c", "x y z"}},
		"blocks": {d.blocks, []block{{"", "A `b.c` d-e_f!", "indented\n\nmore\n"}, {"", "A `b.c` d-e_f!", "in item\n"},
			{"sh", "A `b.c` d-e_f!", "fenced [no](link)\n"}}},
	} {
		if fmt.Sprintf("%q", c.got) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%s: %q, want %q", what, c.got, c.want)
		}
	}
}

// statements cuts SQL at semicolons that end a line.
func statements(sql string) []string {
	var all []string
	for statement := range strings.SplitSeq(sql, ";\n") {
		if strings.TrimSpace(statement) != "" {
			all = append(all, statement)
		}
	}
	return all
}
