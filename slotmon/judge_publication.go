package slotmon

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cdcpub/cdcpub/internal/human"
)

// publication is nil if nothing is known of it.
func (j *judge) publication() *Publication {
	if !j.expected() {
		return nil
	}
	return j.sample.Publication
}

func (j *judge) publicationMissing() *Finding {
	p := j.publication()
	if p == nil || p.Exists {
		return nil
	}
	return atOnce(PublicationMissing, fmt.Sprintf("is read through publication %s, which does not exist", p.Name),
		"it was dropped, renamed or never created; "+j.withoutPublication()+", so nothing is skipped and rows wait in the slot"+j.affected(),
		"create it again at once, as `cdcpub init --print` shows, and restart cdcpub; if it then says that the slot is older than its publication, what waits cannot be decoded: save these rows from their table, README, \"A slot older than its publication\"")
}

// withoutPublication is what happens at WAL in which the publication does not
// exist.
func (j *judge) withoutPublication() string {
	version := j.sample.Server.Version
	if j.sample.Server.VersionNum >= 18_00_00 {
		return fmt.Sprintf("PostgreSQL %s passes over the first row with a notice, which cdcpub takes for an error and stops", version)
	}
	return fmt.Sprintf("PostgreSQL %s stops with an error at the first row", version)
}

// publicationTables: rows of a table that is not published whole are skipped in
// silence.
func (j *judge) publicationTables() *Finding {
	p := j.publication()
	if p == nil || !p.Exists {
		return nil
	}
	var wrong, cures []string
	quoted := identifier(p.Name)
	if len(p.Missing) > 0 {
		wrong = append(wrong, "does not contain "+strings.Join(p.Missing, ", "))
		cures = append(cures, fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s", quoted, strings.Join(j.toAdd(p), ", ")))
	}
	if len(p.Filtered) > 0 {
		wrong = append(wrong, "has a row filter or a column list on "+strings.Join(p.Filtered, ", "))
		cures = append(cures, fmt.Sprintf("ALTER PUBLICATION %s SET TABLE with every table and no filter", quoted))
	}
	if len(p.Unlogged) > 0 {
		wrong = append(wrong, "cannot publish "+strings.Join(p.Unlogged, ", ")+", whose rows are not in the WAL")
		cures = append(cures, "ALTER TABLE ... SET LOGGED for "+strings.Join(p.Unlogged, ", "))
	}
	if !p.Inserts {
		wrong = append(wrong, "does not publish INSERT")
		cures = append(cures, fmt.Sprintf("ALTER PUBLICATION %s SET (publish = 'insert')", quoted))
	}
	if len(wrong) == 0 {
		return nil
	}
	return atOnce(PublicationTables, fmt.Sprintf("is read through publication %s, which %s", p.Name, strings.Join(wrong, ", and ")),
		"rows that are committed meanwhile never appear in the stream"+j.affected(),
		strings.Join(cures, "; ")+"; then publish the rows of this time again from their table")
}

// toAdd is what the publication has to list. A partitioned table itself brings
// its partitions along, those that are attached later too.
func (j *judge) toAdd(p *Publication) []string {
	isTable := func(name string) bool {
		return slices.ContainsFunc(j.subject.Expected.Tables, func(t Table) bool { return t.String() == name })
	}
	add := slices.DeleteFunc(slices.Clone(p.Missing), func(name string) bool { return !isTable(name) })
	if len(add) < len(p.Missing) {
		for _, table := range p.ByPartition {
			if !slices.Contains(add, table) {
				add = append(add, table)
			}
		}
	}
	if len(add) == 0 {
		return p.Missing
	}
	return add
}

// affected says from where on rows may be missing in the stream, if that is
// known.
func (j *judge) affected() string {
	whole := j.subject.Trend.PublicationWhole
	if whole == nil {
		return ""
	}
	return fmt.Sprintf("; nothing written before LSN %s (%s) is affected", *whole, human.Moment(j.subject.Trend.WholeSeen))
}

// publicationChanged also catches what was repaired between two samples.
func (j *judge) publicationChanged() *Finding {
	p := j.publication()
	if p == nil || !p.Exists || !j.subject.Trend.PublicationChanged {
		return nil
	}
	return atOnce(PublicationChanged, fmt.Sprintf("is read through publication %s, which was altered since the monitor began", p.Name),
		"if a table or INSERT was missing from it for a while, rows committed meanwhile were skipped in silence; if it was dropped and created again, "+j.withoutPublication()+", and nothing is skipped"+j.affected(),
		"ask who altered it; compare the rows of that time with the topic; restart cdcpub to accept it as it is now; if it then says that the slot is older than its publication, see README under that title")
}

// blocked: the publisher has said itself that it needs a human.
func (j *judge) blocked() *Finding {
	p := j.publisher()
	if p == nil || p.State != "blocked" {
		return nil
	}
	cause := p.Stall
	if cause != "" && !p.StallSince.IsZero() {
		cause += ", since " + human.Moment(p.StallSince)
	}
	cure := "the cause says what to do"
	if j.slot != nil && !j.slot.Lost() {
		cure += "; the slot keeps WAL until then"
	}
	return atOnce(PublisherBlocked, "is not read: "+publisherName(p)+" is blocked and waits for a human", cause, cure)
}

func (j *judge) stalled() *Finding {
	p := j.publisher()
	if p == nil || p.Stall == "" || p.State == "blocked" || p.State == "standby" || p.StallSince.IsZero() {
		return nil
	}
	lasted := max(j.sample.Taken.Sub(p.StallSince), 0)
	f := byLimit(PublisherStalled, lasted.Seconds(), "seconds", j.limits.Stalled.above(lasted))
	if f == nil {
		return nil
	}
	f.Summary = fmt.Sprintf("has not been published from for %s%s", human.Seconds(lasted.Seconds()), f.against(human.Seconds(*f.Limit)))
	f.Cause, f.Cure = j.culprit.sentence, j.publisherCulprit().cure
	return f
}

// identifier quotes a name for SQL.
func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
