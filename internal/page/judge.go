package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/slotmon"
)

// defaultInterval is assumed where a snapshot does not say how often it samples.
const defaultInterval = 10 * time.Second

// fresh tells if what the server said last is still worth calling present.
func fresh(s *monitor.Server, o *observation) bool {
	return s.Up && s.Sample != nil && o.at.Sub(s.Sample.Taken) <= staleAfter(o)
}

// staleAfter is three intervals of the monitor.
func staleAfter(o *observation) time.Duration {
	return 3 * cmp.Or(o.monitor.Interval, defaultInterval)
}

// verdict is the worst of everything that is true now. What is gone does not
// count, although its alert has not ended yet.
func verdict(o *observation) slotmon.Severity {
	worst := publisherVerdict(o.publisher)
	if len(o.monitor.Servers) == 0 {
		worst = worse(worst, slotmon.Unknown)
	}
	for i := range o.monitor.Servers {
		worst = worse(worst, serverVerdict(&o.monitor.Servers[i], o))
	}
	for _, c := range cards(o) {
		if c.isCurrent() {
			worst = worse(worst, c.finding.Severity)
		}
	}
	return worst
}

func serverVerdict(s *monitor.Server, o *observation) slotmon.Severity {
	if !fresh(s, o) {
		return worse(s.Verdict, slotmon.Unknown)
	}
	return s.Verdict
}

// publisherVerdict agrees with /readyz: what is not ready is never ok.
func publisherVerdict(s *publisher.Status) slotmon.Severity {
	switch {
	case s == nil:
		return slotmon.OK
	case s.State == publisher.Blocked || s.State == publisher.Stopped:
		return slotmon.Critical
	case !s.Ready:
		return slotmon.Warning
	}
	return slotmon.OK
}

func worse(a, b slotmon.Severity) slotmon.Severity {
	if a.Worse(b) {
		return b
	}
	return a
}

// headline is one sentence: the worst that is true now, or that all is well.
func headline(o *observation) string {
	verdict := verdict(o)
	for _, c := range cards(o) {
		if c.isCurrent() && c.finding.Severity == verdict {
			return sentence(o, &c)
		}
	}
	if len(o.monitor.Servers) == 0 {
		return "no server has been sampled yet"
	}
	for i := range o.monitor.Servers {
		if s := &o.monitor.Servers[i]; serverVerdict(s, o) == verdict && !fresh(s, o) {
			return s.Name + ": " + staleness(s)
		}
	}
	return calm(o)
}

// sentence is a card in one line.
func sentence(o *observation, c *card) string {
	switch c.standing {
	case said:
		return c.finding.Summary
	case unseen:
		return "when last seen, " + subject(o, c.server, c.slot) + c.finding.Summary
	}
	return subject(o, c.server, c.slot) + c.finding.Summary
}

// subject names what a sentence is about, as far as it is not obvious.
func subject(o *observation, server, slot string) string {
	switch {
	case slot == "":
		return server + " "
	case len(o.monitor.Servers) > 1:
		return fmt.Sprintf("slot %s on %s ", slot, server)
	}
	return fmt.Sprintf("slot %s ", slot)
}

func publisherTrouble(s *publisher.Status) string {
	if s.Stall != nil {
		return s.Stall.Cause
	}
	return fmt.Sprintf("the publisher is %s and not ready", s.State)
}

// staleness says why a server's numbers are not fresh.
func staleness(s *monitor.Server) string {
	switch {
	case s.Unreachable != "":
		return s.Unreachable
	case s.Sample == nil:
		return "no sample has been taken yet"
	}
	return "the last sample is old: " + s.Sample.Taken.UTC().Format(time.RFC3339)
}

func calm(o *observation) string {
	if s := o.publisher; s != nil {
		if s.State == publisher.Standby { // its stall is that it stands by
			return fmt.Sprintf("standing by: another process holds slot %s", s.Slot)
		}
		if s.Stall != nil {
			return s.Stall.Cause
		}
		return fmt.Sprintf("%s from slot %s", s.State, s.Slot)
	}
	slots := 0
	for i := range o.monitor.Servers {
		slots += len(o.monitor.Servers[i].Slots)
	}
	return fmt.Sprintf("%s on %s", count(slots, "slot"), count(len(o.monitor.Servers), "server"))
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// ranked is a slot with its server.
type ranked struct {
	server *monitor.Server
	slot   *monitor.Slot
	fresh  bool
}

// bytes is a gap unless the number is there and fresh.
func (r *ranked) bytes(of func(*slotmon.Slot) *int64) number {
	if !r.fresh || r.slot.Slot == nil {
		return gap
	}
	if n := of(r.slot.Slot); n != nil {
		return number(*n)
	}
	return gap
}

func (r *ranked) retained() int64 {
	if r.slot.Slot == nil || r.slot.Slot.RetainedBytes == nil {
		return -1
	}
	return *r.slot.Slot.RetainedBytes
}

// rank lists all slots: the worst verdict first, then ours, then those that
// retain most.
func rank(o *observation) []ranked {
	var all []ranked
	for i := range o.monitor.Servers {
		server := &o.monitor.Servers[i]
		fresh := fresh(server, o)
		for j := range server.Slots {
			all = append(all, ranked{server, &server.Slots[j], fresh})
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		return cmp.Or(compareSeverity(a.slot.Report.Verdict, b.slot.Report.Verdict), compareBool(a.slot.Ours, b.slot.Ours),
			cmp.Compare(b.retained(), a.retained()),
			cmp.Compare(a.server.Name, b.server.Name), cmp.Compare(a.slot.Name, b.slot.Name))
	})
	return all
}
