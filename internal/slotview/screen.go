package slotview

import (
	"fmt"
	"io"
	"strings"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/slotmon"
)

// Screen writes the status for a terminal: the verdict and the culprit, the
// reasons with what to do next, and then the facts.
func (s *Status) Screen(w io.Writer, style Style) error {
	var b strings.Builder
	s.heading(&b, style)
	s.reasons(&b, style)
	if rows := s.facts(); len(rows) > 0 {
		b.WriteByte('\n')
		for _, row := range rows {
			labelled(&b, 0, row.label, row.text)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *Status) heading(b *strings.Builder, style Style) {
	about := "slot " + s.Name
	if s.Name == "" {
		about = "no slot was looked at"
	}
	if s.ServerName != "" {
		about += " on " + s.ServerName
	}
	if s.Server != nil {
		about += ", PostgreSQL " + s.Server.Version
		if s.Server.InRecovery {
			about += " (standby)"
		}
	}
	lead(b, style.verdict(s.Verdict, verdictWidth), about)
	for _, problem := range s.problems() {
		lead(b, strings.Repeat(" ", verdictWidth), problem)
	}
	if s.Report.Culprit != "" && !(s.Slot != nil && s.Slot.Lost()) { // the reason for that says it all
		lead(b, strings.Repeat(" ", verdictWidth), s.culpritWord()+s.Report.Culprit)
	}
}

// reasons are the findings, each with its id, which is also the name of its
// section in the runbook. Several have the same cause and cure more often than
// not: that is said once.
func (s *Status) reasons(b *strings.Builder, style Style) {
	said := s.Report.Culprit
	for _, finding := range s.Report.Findings {
		b.WriteByte('\n')
		lead(b, style.verdict(finding.Severity, verdictWidth), string(finding.ID)+": "+finding.Summary)
		if finding.Cause != "" && !strings.Contains(said, finding.Cause) {
			labelled(b, verdictWidth+2, "cause", finding.Cause)
		}
		switch {
		case finding.Cure == "":
		case strings.Contains(said, finding.Cure):
			labelled(b, verdictWidth+2, "next", "as above")
		default:
			labelled(b, verdictWidth+2, "next", finding.Cure)
		}
		said += "\n" + finding.Cause + "\n" + finding.Cure
	}
}

// verdictWidth is that of CRITICAL.
const verdictWidth = 8

// lead writes text in lines behind a first column of verdictWidth.
func lead(b *strings.Builder, first, text string) {
	for i, line := range human.Wrap(human.Clean(text), width-verdictWidth-2) {
		if i > 0 {
			first = strings.Repeat(" ", verdictWidth)
		}
		fmt.Fprintf(b, "%s  %s\n", first, line)
	}
}

// labelled writes a label and its text in lines that begin in the same column.
func labelled(b *strings.Builder, indent int, label, text string) {
	labelWidth := 15
	if indent > 0 {
		labelWidth = 5
	}
	for i, line := range human.Wrap(human.Clean(text), width-indent-labelWidth-2) {
		if i > 0 {
			label = ""
		}
		fmt.Fprintf(b, "%s%-*s  %s\n", strings.Repeat(" ", indent), labelWidth, label, line)
	}
}

// culpritWord introduces who holds the WAL: under OK nobody is to blame.
func (s *Status) culpritWord() string {
	if s.Verdict == slotmon.OK {
		return "Note: "
	}
	return "Culprit: "
}
