package check

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cdcpub/cdcpub/internal/human"
)

// Style is how much a terminal can show.
type Style struct{ Color bool }

// width is how many columns a line may have, commands aside.
const width = 100

// Columns of a line: status, id, text.
const (
	statusWidth = 6
	idWidth     = 27
	indent      = statusWidth + idWidth
)

// sections begin at the first check whose id has the prefix.
var sections = []struct{ prefix, title string }{
	{"postgres.", "PostgreSQL %s"}, {"publication.", "Publication"}, {"slot.", "Slot"}, {"outbox.", "Outbox tables"},
	{"kafka.", "Kafka %s"}, {"topic.", "Topics"}, {"http.", "This machine"},
}

// Text writes a line for each result, and its cure behind it. Checks that were
// skipped for one reason share a line.
func (r *Report) Text(w io.Writer, style Style) error {
	p := &printer{style: style}
	section := ""
	for i := range r.Checks {
		if next, title := r.section(r.Checks[i].ID); next != section {
			section = next
			p.line("%s", title)
		}
		first, others := r.sameReason(i)
		if first {
			p.result(&r.Checks[i], others)
		}
	}
	p.line("%s: %d ok, %s, %s, %d skipped", style.paint(r.Verdict, verdicts[r.Verdict]), r.Counts.OK, plural(r.Counts.Warn, "warning"), plural(r.Counts.Fail, "failure"), r.Counts.Skip)
	if failed := r.failed(); len(failed) > 0 {
		for _, line := range human.Wrap("Failed: "+strings.Join(failed, ", "), width) {
			p.line("%s", line)
		}
	}
	_, err := io.WriteString(w, p.text.String())
	return err
}

// failed are the ids of the checks that failed.
func (r *Report) failed() []string {
	var ids []string
	for i := range r.Checks {
		if id := r.Checks[i].ID; r.Checks[i].Status == Fail && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

var verdicts = [...]string{OK: "Ready", Warn: "Ready, with warnings", Fail: "Not ready", Skip: "Not ready"}

func (r *Report) section(id string) (prefix, title string) {
	for _, s := range sections {
		if strings.HasPrefix(id, s.prefix) {
			title = s.title
			switch s.prefix {
			case "postgres.":
				title = fmt.Sprintf(title, r.Server)
			case "kafka.":
				title = fmt.Sprintf(title, strings.Join(r.Brokers, ", "))
			}
			return s.prefix, title
		}
	}
	return "", ""
}

// sameReason finds the results that were skipped in the same section, for the
// same reason and subjects as result i. first tells if i is the first of them;
// others are the ids of the rest.
func (r *Report) sameReason(i int) (first bool, others []string) {
	result := &r.Checks[i]
	if result.Status != Skip {
		return true, nil
	}
	section, _ := r.section(result.ID)
	for k := range r.Checks {
		other := &r.Checks[k]
		its, _ := r.section(other.ID)
		if k == i || its != section || other.Status != Skip || other.Found != result.Found || !slices.Equal(other.Subjects, result.Subjects) {
			continue
		}
		if k < i {
			return false, nil
		}
		others = append(others, other.ID)
	}
	return true, others
}

type printer struct {
	style Style
	text  strings.Builder
}

func (p *printer) line(format string, args ...any) {
	p.text.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

func (p *printer) result(r *Result, others []string) {
	status := strings.ToUpper(r.Status.String())
	head := p.style.paint(r.Status, status) + strings.Repeat(" ", statusWidth-len(status))
	text := human.Clean(r.Found)
	if len(r.Subjects) > 0 {
		text = human.Clean(list(r.Subjects)) + ": " + text
	}
	if len(others) > 0 {
		text += " (and so " + shortIDs(others) + ")"
	}
	for i, line := range human.Wrap(text, width-indent) {
		if i == 0 {
			p.line("%s%-*s%s", head, idWidth, r.ID, line)
		} else {
			p.line("%*s%s", indent, "", line)
		}
	}
	if r.Cure == "" {
		return
	}
	cure := human.Clean(r.Cure)
	if len(r.Commands) > 0 {
		cure += ":"
	}
	for i, line := range human.Wrap(cure, width-indent-3) {
		mark := "   "
		if i == 0 {
			mark = "-> "
		}
		p.line("%*s%s%s", indent, "", mark, line)
	}
	for _, command := range shown(r.Commands) {
		p.line("%*s%s", indent+3, "", human.Clean(command))
	}
}

// shown are the commands, but for those of subjects beyond the first few.
func shown(commands []string) []string {
	const most = 8
	if len(commands) <= most {
		return commands
	}
	return append(slices.Clone(commands[:most]), fmt.Sprintf("... and %d more, in -o json", len(commands)-most))
}

// shortIDs leaves the common prefix out.
func shortIDs(ids []string) string {
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		_, name, _ := strings.Cut(id, ".")
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// paint colors the text by SGR parameters.
func (s Style) paint(status Status, text string) string {
	colors := [...]string{OK: "32", Warn: "1;33", Fail: "1;31", Skip: "1;35"}
	if !s.Color {
		return text
	}
	return "\x1b[" + colors[status] + "m" + text + "\x1b[0m"
}
