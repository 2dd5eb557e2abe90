package slotview

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/slotmon"
)

// List is the slots of a cluster, the document that `cdcpub slot list -o json`
// prints. Members may be added; none changes its name or meaning.
type List struct {
	// ServerName is host:port/database as cdcpub was told it.
	ServerName string `json:"server_name"`
	// Taken is when the sample was complete, by the clock of this machine.
	Taken  time.Time      `json:"taken"`
	Server slotmon.Server `json:"server"`
	Slots  []Listed       `json:"slots"`
	// Unseen names what the role may not see, each with the GRANT that is
	// missing.
	Unseen []string `json:"unseen"`
}

// Listed is a slot and its verdict. The verdict is that of one sample: what
// takes two, such as growth, is part of a Status only.
type Listed struct {
	Verdict slotmon.Severity `json:"verdict"`
	// Ours: the configuration publishes from it.
	Ours bool `json:"ours"`
	slotmon.Slot
	// Findings are the reasons of the verdict.
	Findings []slotmon.Finding `json:"findings"`
}

// NewList puts the judged slots together: judge is called for each.
func NewList(server string, sample *slotmon.Sample, ours string, judge func(slot string) slotmon.Report) *List {
	l := &List{ServerName: server, Taken: sample.Taken, Server: sample.Server, Slots: []Listed{}, Unseen: sample.Unseen}
	if l.Unseen == nil {
		l.Unseen = []string{}
	}
	for _, slot := range sample.Slots {
		report := judge(slot.Name)
		if report.Findings == nil {
			report.Findings = []slotmon.Finding{}
		}
		l.Slots = append(l.Slots, Listed{Verdict: report.Verdict, Ours: slot.Name == ours, Slot: slot, Findings: report.Findings})
	}
	return l
}

// JSON writes the document.
func (l *List) JSON(w io.Writer) error { return encode(w, l) }

// Table writes a line for each slot.
func (l *List) Table(w io.Writer, style Style) error {
	if len(l.Slots) == 0 {
		return l.notes(w)
	}
	rows := [][]string{{"SLOT", "PLUGIN", "DATABASE", "ACTIVE", "HOLDER", "RETAINED", "LAG", "WAL_STATUS"}}
	for i := range l.Slots {
		rows = append(rows, l.Slots[i].row())
	}
	fit(rows, width-len("VERDICT")-1-gap)
	table := tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)
	for i, row := range rows {
		verdict := "VERDICT"
		if i > 0 {
			verdict = style.verdict(l.Slots[i-1].Verdict, 0)
		}
		if _, err := fmt.Fprintf(table, "%s\t%s\n", strings.Join(row, "\t"), verdict); err != nil {
			return err
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return l.notes(w)
}

// notes are what a table cannot say.
func (l *List) notes(w io.Writer) error {
	var notes []string
	if len(l.Slots) == 0 {
		notes = append(notes, "There is no replication slot on "+l.ServerName+".")
	}
	for _, unseen := range l.Unseen {
		notes = append(notes, "Not visible: "+unseen)
	}
	for _, note := range notes {
		for _, line := range human.Wrap(human.Clean(note), width) {
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Listed) row() []string {
	row := []string{s.Name, s.Plugin, s.Database, "no", "", "", "", ""}
	if s.Type == "physical" {
		row[1] = "physical"
	}
	if s.Active {
		row[3] = "yes"
	}
	if h := s.Holder; h != nil {
		row[4] = strings.TrimSpace(fmt.Sprintf("%d %s", h.PID, h.ApplicationName))
	}
	if s.RetainedBytes != nil {
		row[5] = human.Bytes(*s.RetainedBytes)
	}
	if s.ConfirmedLagBytes != nil {
		row[6] = human.Bytes(*s.ConfirmedLagBytes)
	}
	if s.WALStatus != nil {
		row[7] = *s.WALStatus
	}
	for i := range row {
		row[i] = human.Clean(row[i])
		if row[i] == "" {
			row[i] = "-"
		}
	}
	return row
}

// gap is between two columns.
const gap = 2

// fit shortens holders, then databases, then plugins until the rows fit into
// so many columns. The name of a slot has to be typed: it is never shortened,
// so one of more than 24 characters can make the table wider.
func fit(rows [][]string, columns int) {
	const least = 8
	widths := make([]int, len(rows[0]))
	total := gap * (len(widths) - 1)
	for i := range widths {
		widths[i] = utf8.RuneCountInString(slices.MaxFunc(rows, func(a, b []string) int {
			return utf8.RuneCountInString(a[i]) - utf8.RuneCountInString(b[i])
		})[i])
		total += widths[i]
	}
	for _, column := range []int{4, 2, 1} { // holder, database, plugin
		if total <= columns || widths[column] <= least {
			continue
		}
		shorter := max(least, widths[column]-(total-columns))
		for _, row := range rows {
			row[column] = shorten(row[column], shorter)
		}
		total -= widths[column] - shorter
	}
}
