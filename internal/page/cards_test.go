package page

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/slotmon"
)

// listed is each card in a word: its id and its standing.
func listed(o *observation) (words []string) {
	for _, c := range cards(o) {
		words = append(words, string(c.finding.ID)+" "+string(c.standing))
	}
	return words
}

func TestTheHeadlineIsTheWorstOfTheLatestSample(t *testing.T) {
	w := newWorld()
	o := w.lost(359, 359, noon)
	if want := "slot cdcpub is lost and can never be read again"; !strings.HasPrefix(headline(&o), want) {
		t.Errorf("%q, want %q: what costs data comes first", headline(&o), want)
	}
	want := []string{"slot_lost due", "publisher_blocked due", "time_to_lost gone", "publisher_stalled gone"}
	if got := listed(&o); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, c := range describe(&o, "1", time.Second).Cards {
		if (c.Cure == "") != (c.Standing == gone) {
			t.Errorf("%s, %s: cure %q", c.ID, c.Standing, c.Cure)
		}
	}
}

func TestAfterTheSlotIsHealthyAnOldAlertChangesNothing(t *testing.T) {
	o := newWorld().healthy(0, 1, noon)
	o.monitor.Alerts = []slotmon.Alert{raise(o.monitor.Servers[0].Name, "cdcpub", noon, slotmon.Finding{
		ID: slotmon.SlotMissing, Severity: slotmon.Critical, Summary: "does not exist, and cdcpub needs it", Cure: "`cdcpub slot create cdcpub`",
	})}
	if v := verdict(&o); v != slotmon.OK || headline(&o) != "streaming from slot cdcpub" {
		t.Errorf("%s: %s", v, headline(&o))
	}
	answer := describe(&o, "1", time.Second)
	if c := answer.Cards; len(c) != 1 || c[0].Standing != gone || c[0].Cure != "" || *c[0].Alert != slotmon.Critical {
		t.Errorf("%+v", c)
	}
}

func TestTheTextsOfACardAreThoseOfTheLatestSample(t *testing.T) {
	o := newWorld().healthy(0, 1, noon)
	server := &o.monitor.Servers[0]
	latest := slotmon.Finding{ID: slotmon.TimeToLost, Severity: slotmon.Warning, Summary: "will be lost in 2 h"}
	server.Verdict, server.Slots[0].Report = slotmon.Warning, slotmon.Report{Verdict: slotmon.Warning, Findings: []slotmon.Finding{latest}}
	before := latest
	before.Severity, before.Summary = slotmon.Critical, "will be lost in 5 s"
	o.monitor.Alerts = []slotmon.Alert{raise(server.Name, "cdcpub", noon.Add(-time.Minute), before)}
	c := describe(&o, "1", time.Second).Cards[0]
	if c.Standing != raised || c.Summary != latest.Summary || c.Severity != slotmon.Warning || *c.Alert != slotmon.Critical ||
		c.SinceMS != noon.Add(-time.Minute).UnixMilli() {
		t.Errorf("%+v", c)
	}
	if v := verdict(&o); v != slotmon.Warning || headline(&o) != "slot cdcpub will be lost in 2 h" {
		t.Errorf("%s: %s", v, headline(&o))
	}
}

func TestCardsComeInTheOrderOfWhatMatters(t *testing.T) {
	o := newWorld().healthy(0, 1, noon)
	server := &o.monitor.Servers[0]
	of := func(severity slotmon.Severity, ids ...slotmon.FindingID) (findings []slotmon.Finding) {
		for _, id := range ids {
			findings = append(findings, slotmon.Finding{ID: id, Severity: severity})
		}
		return findings
	}
	server.Slots = append(server.Slots, held("other", "shop", 1, 1, false))
	server.Slots[1].Report.Findings = of(slotmon.Critical, slotmon.SlotLost)
	server.Slots[0].Report.Findings = slices.Concat(
		of(slotmon.Critical, slotmon.TimeToLost, slotmon.PublicationTables),
		of(slotmon.Warning, slotmon.PublicationChanged), of(slotmon.Info, slotmon.NoRetentionLimit))
	want := []string{"publication_tables due", "time_to_lost due", "slot_lost due", "publication_changed due"}
	if got := listed(&o); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestNothingIsGoneThatCannotBeSeen(t *testing.T) {
	for name, change := range map[string]func(*observation){
		"unreachable": func(o *observation) {
			s := &o.monitor.Servers[0]
			s.Up, s.Unreachable = false, "connection refused"
			s.Slots[0].Report = slotmon.Judge(slotmon.Limits{}, slotmon.Subject{Unreachable: s.Unreachable})
		},
		"old sample": func(o *observation) { o.at = o.at.Add(4 * time.Hour) },
	} {
		o := newWorld().lost(358, 359, noon)
		change(&o)
		o.publisher = nil
		if v := verdict(&o); v != slotmon.Critical {
			t.Errorf("%s: %s", name, v)
		}
		if got := headline(&o); !strings.HasPrefix(got, "when last seen, slot cdcpub will be lost in 18 min") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestThePublisherSaysWhatNoSampleHasSeenYet(t *testing.T) {
	o := newWorld().healthy(0, 1, noon)
	blocked(&o)
	if got := listed(&o); !slices.Equal(got, []string{"publisher_blocked said"}) {
		t.Errorf("%q", got)
	}
	o.publisher.State = publisher.Connecting
	if got := listed(&o); !slices.Equal(got, []string{"publisher_not_ready said"}) {
		t.Errorf("%q", got)
	}
	finding := slotmon.Finding{ID: slotmon.PublisherStalled, Severity: slotmon.Warning}
	o.monitor.Servers[0].Slots[0].Report.Findings = []slotmon.Finding{finding}
	if got := listed(&o); !slices.Equal(got, []string{"publisher_stalled due"}) {
		t.Errorf("%q: said twice", got)
	}
}

func TestAServerIsSaidToBeUnreachableOnceAndNotBeforeItWasAsked(t *testing.T) {
	o := newWorld().watched(359, 359, noon)
	n := 0
	for _, c := range cards(&o) {
		if c.finding.ID == slotmon.ServerUnreachable {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d cards for a server with four slots", n)
	}
	o.monitor.Servers = []monitor.Server{{Name: "db", Unreachable: "not asked yet"}}
	o.monitor.Alerts = nil
	if got := cards(&o); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestEveryCardLeadsToASectionOfTheRunbook(t *testing.T) {
	text, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	last := w.lost(359, 359, noon)
	before := w.dying(359, 359, noon)
	alone := w.healthy(0, 1, noon)
	alone.publisher.Ready = false
	all := slices.Concat(describe(&last, "1", 0).Cards, describe(&before, "1", 0).Cards, describe(&alone, "1", 0).Cards)
	for _, c := range all {
		section, ok := strings.CutPrefix(c.Runbook, "https://github.com/cdcpub/cdcpub/blob/main/docs/runbook.md#")
		if !ok || section != string(c.ID) || !strings.Contains(string(text), "\n## "+section+"\n") {
			t.Errorf("%s leads to %s", c.ID, c.Runbook)
		}
	}
	if len(all) != 7 {
		t.Errorf("%d cards", len(all))
	}
}

func TestTheRoleIsStandbyOnlyForOneThatStandsBy(t *testing.T) {
	for _, c := range []struct {
		state      publisher.State
		says, want string
	}{
		{publisher.Streaming, "active", "active"}, {publisher.Standby, "standby", "standby"},
		{publisher.Connecting, "standby", "none"}, {publisher.Blocked, "standby", "none"}, {publisher.Stopped, "standby", "none"},
	} {
		if got := describePublisher(&publisher.Status{State: c.state, Role: c.says}).Role; got != c.want {
			t.Errorf("%s: %s, want %s", c.state, got, c.want)
		}
	}
}

func TestASlotSaysItsLossOnce(t *testing.T) {
	w := newWorld()
	o := w.lost(359, 359, noon)
	slot := describe(&o, "1", 0).Slots[0]
	if !slot.Gone || slot.Culprit != "" || strings.Count(slot.Reason, "lost") != 1 {
		t.Errorf("%+v", slot)
	}
	o = w.dying(359, 359, noon)
	if slot := describe(&o, "1", 0).Slots[0]; slot.Reason != "" || slot.Lost == nil || slot.Culprit == "" {
		t.Errorf("%+v", slot)
	}
}
