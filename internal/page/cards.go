package page

import (
	"cmp"
	"slices"

	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/slotmon"
)

// runbook has a section for each id of a card.
const runbook = "https://github.com/cdcpub/cdcpub/blob/main/docs/runbook.md#"

// notReady is the section about a publisher that is not ready; no finding of a
// slot has this id.
const notReady slotmon.FindingID = "publisher_not_ready"

// standing says how a card stands to the latest sample.
type standing string

const (
	raised standing = "raised" // a finding of the latest sample, with its alert
	due    standing = "due"    // a finding of the latest sample whose alert is not raised yet
	said   standing = "said"   // no finding yet: the publisher says it of itself
	unseen standing = "unseen" // as it was when the server was last seen
	gone   standing = "gone"   // an alert whose finding the latest sample no longer has
)

// card is something that is wrong, or was a moment ago. Its texts are those of
// the latest sample; those of an alert only where there is nothing later.
type card struct {
	server, slot string
	ours         bool
	standing     standing
	finding      slotmon.Finding
	alert        *slotmon.Alert // nil: none is raised
}

// cards lists what is wrong, what matters most first, and then what is gone.
func cards(o *observation) []card {
	var all []card
	for i := range o.monitor.Servers {
		all = append(all, serverCards(o, &o.monitor.Servers[i])...)
	}
	for i := range o.monitor.Alerts {
		alert := &o.monitor.Alerts[i]
		if at := slices.IndexFunc(all, func(c card) bool { return c.key() == alert.Key() }); at >= 0 {
			all[at].raise(alert)
			continue
		}
		all = append(all, alertCard(o, alert))
	}
	if own := publisherCard(o.publisher, all); own != nil {
		all = append(all, *own)
	}
	slices.SortStableFunc(all, compareCards)
	return all
}

// raise gives a finding its alert. What is unknown for so long that there is an
// alert counts as the alert does.
func (c *card) raise(alert *slotmon.Alert) {
	c.alert = alert
	if c.standing == due {
		c.standing = raised
	}
	if c.finding.Severity == slotmon.Unknown {
		c.finding.Severity = alert.Severity
	}
}

func (c *card) key() slotmon.AlertKey {
	return slotmon.AlertKey{Server: c.server, Slot: c.slot, ID: c.finding.ID}
}

// serverCards are the findings of the slots of a server, and that it cannot be
// asked.
func serverCards(o *observation, s *monitor.Server) []card {
	var all []card
	if !s.Up && (s.Sample != nil || !s.Asked.IsZero()) { // else it was not asked yet
		itself := slotmon.Judge(slotmon.Limits{}, slotmon.Subject{Unreachable: s.Unreachable})
		all = append(all, card{server: s.Name, standing: due, finding: itself.Findings[0]})
	}
	seen := due
	if !fresh(s, o) {
		seen = unseen
	}
	for i := range s.Slots {
		slot := &s.Slots[i]
		for _, finding := range slot.Report.Findings {
			if isTrouble(&finding) && finding.ID != slotmon.ServerUnreachable { // the server has one card for all its slots
				all = append(all, card{server: s.Name, slot: slot.Name, ours: slot.Ours, standing: seen, finding: finding})
			}
		}
	}
	return all
}

func isTrouble(f *slotmon.Finding) bool {
	return f.Severity != slotmon.OK && f.Severity != slotmon.Info
}

// alertCard is an alert without a finding. It is gone only if a fresh sample
// says so: of a server that does not answer nothing newer is known.
func alertCard(o *observation, a *slotmon.Alert) card {
	c := card{server: a.Server, slot: a.Slot, standing: unseen, alert: a, finding: slotmon.Finding{
		ID: a.ID, Severity: a.Severity, Summary: a.Summary, Cause: a.Cause, Cure: a.Cure,
	}}
	for i := range o.monitor.Servers {
		server := &o.monitor.Servers[i]
		if server.Name != a.Server {
			continue
		}
		if fresh(server, o) {
			c.standing, c.finding.Cure = gone, ""
		}
		c.ours = slices.ContainsFunc(server.Slots, func(s monitor.Slot) bool { return s.Name == a.Slot && s.Ours })
	}
	return c
}

// publisherCard is what the publisher of this process says of itself, nil if
// that is good or a card says it already.
func publisherCard(s *publisher.Status, all []card) *card {
	severity := publisherVerdict(s)
	if severity == slotmon.OK {
		return nil
	}
	for i := range all {
		c := &all[i]
		if c.ours && c.isCurrent() && !c.finding.Severity.Worse(severity) &&
			(c.finding.ID == slotmon.PublisherBlocked || c.finding.ID == slotmon.PublisherStalled) {
			return nil
		}
	}
	id := notReady
	if s.State == publisher.Blocked {
		id = slotmon.PublisherBlocked
	}
	return &card{slot: s.Slot, ours: true, standing: said, finding: slotmon.Finding{ID: id, Severity: severity, Summary: publisherTrouble(s)}}
}

// isCurrent tells if the card counts for the verdict.
func (c *card) isCurrent() bool { return c.standing != gone }

// compareCards: what is gone last; the worst first; of those our own slot; of
// those what costs data, then what the publisher says at this moment. The
// remaining order is the one of the report.
func compareCards(a, b card) int {
	if order := compareBool(a.isCurrent(), b.isCurrent()); order != 0 {
		return order
	}
	return cmp.Or(compareSeverity(a.finding.Severity, b.finding.Severity), compareBool(a.ours, b.ours),
		compareBool(costsData(a.finding.ID), costsData(b.finding.ID)), compareBool(a.standing == said, b.standing == said))
}

func costsData(id slotmon.FindingID) bool {
	switch id {
	case slotmon.SlotMissing, slotmon.SlotLost, slotmon.PublicationMissing, slotmon.PublicationTables, slotmon.PublicationChanged:
		return true
	}
	return false
}

// compareSeverity orders the worse first.
func compareSeverity(a, b slotmon.Severity) int {
	switch {
	case a.Worse(b):
		return 1
	case b.Worse(a):
		return -1
	}
	return 0
}

// compareBool orders true first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// worst is the finding of a slot that matters most, nil if nothing is wrong.
func worst(r *slotmon.Report) *slotmon.Finding {
	var first *slotmon.Finding
	for i := range r.Findings {
		f := &r.Findings[i]
		if !isTrouble(f) {
			continue
		}
		if first == nil || cmp.Or(compareSeverity(f.Severity, first.Severity), compareBool(costsData(f.ID), costsData(first.ID))) < 0 {
			first = f
		}
	}
	return first
}
