package slotview

import (
	"fmt"
	"strings"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/slotmon"
)

// holder says who has the slot.
func (s *Status) holder() string {
	h := s.Slot.Holder
	switch {
	case !s.Slot.Active:
		return "nobody"
	case h == nil:
		return "somebody; who is not visible"
	}
	text := strings.TrimSpace(fmt.Sprintf("PID %d %s", h.PID, h.ApplicationName))
	if h.User != "" {
		text += ", user " + h.User
	}
	if h.Since == nil && h.State == "" {
		return text + "; address, age and state take pg_monitor to see"
	}
	if h.Address != "" {
		text += ", from " + h.Address
	} else {
		text += ", by Unix socket"
	}
	if h.Since != nil {
		text += ", since " + moment(*h.Since, s.Server.Now)
	}
	if h.State != "" {
		text += ", " + h.State
	}
	if sent, flushed := h.SentLSN, h.FlushLSN; sent != nil && flushed != nil && *sent > *flushed {
		text += fmt.Sprintf("; %s sent and not yet flushed by it", human.Bytes(int64(*sent-*flushed)))
	}
	return text
}

// publisher is what the publisher says of itself, or what its last report to
// the server tells instead.
func (s *Status) publisher() string {
	p := s.Publisher
	if p == nil {
		return ""
	}
	if p.Unanswered != "" {
		text := fmt.Sprintf("did not answer at %s (%s)", p.Address, p.Unanswered)
		return strings.Join(append([]string{text}, s.lastFlush()...), "; ")
	}
	text := p.State
	if p.Address != "" {
		text = p.Address + ": " + text
	}
	if p.Role != "" && p.Role != p.State {
		text += ", " + p.Role
	}
	if p.Stall != "" {
		text += "; stalled"
		if !p.StallSince.IsZero() {
			text += " since " + moment(p.StallSince, s.Taken)
		}
		return text + ": " + p.Stall
	}
	return text + ", not stalled"
}

// lastFlush is what the server last heard from the holder.
func (s *Status) lastFlush() []string {
	if s.Slot == nil || s.Server == nil || s.Slot.Holder == nil || s.Slot.Holder.FlushLSN == nil {
		return nil
	}
	h := s.Slot.Holder
	text := "the holder"
	if h.Address != "" {
		text += " at " + h.Address
	}
	text += " flushed up to " + h.FlushLSN.String()
	if behind := int64(s.Server.WAL) - int64(*h.FlushLSN); behind > 0 {
		text += ", " + human.Bytes(behind) + " behind"
	}
	if h.ReplyTime != nil {
		text += ", as it reported at " + moment(*h.ReplyTime, s.Server.Now)
	}
	return []string{text}
}

// inactive is since when nobody has held the slot.
func (s *Status) inactive() string {
	if s.Slot.Active {
		return ""
	}
	text := fmt.Sprintf("since when is not remembered by PostgreSQL %d", s.Server.VersionNum/10000)
	switch {
	case s.Slot.InactiveSince != nil:
		text = "since " + moment(*s.Slot.InactiveSince, s.Server.Now)
	case s.InactiveSeconds != nil && *s.InactiveSeconds >= 1:
		text = fmt.Sprintf("for %s or longer; %s", human.Seconds(*s.InactiveSeconds), text)
	}
	if s.Server.IdleSlotTimeout > 0 && !s.Slot.Lost() {
		text += "; idle_replication_slot_timeout is " + span(s.Server.IdleSlotTimeout)
	}
	return text
}

// failover says if the slot would be there after a failover.
func (s *Status) failover() string {
	switch slot := s.Slot; {
	case slot.Type == "physical":
		return ""
	case slot.Failover == nil:
		return "the slot does not survive one: failover slots need PostgreSQL 17"
	case s.Server.InRecovery && slot.Synced != nil && *slot.Synced: // a promoted server keeps the mark
		return "this is the copy of a failover slot, synced from the primary"
	case !*slot.Failover:
		return "the slot does not survive one: failover is false"
	case len(s.Standbys) == 0:
		return "failover slot; no standby was asked, see slot_monitor.standbys"
	}
	ready := 0
	var answers []string
	for i := range s.Standbys {
		answer := "ready"
		if s.Standbys[i].Ready() {
			ready++
		} else {
			answer = notReady(&s.Standbys[i])
		}
		answers = append(answers, s.Standbys[i].Address+" "+answer)
	}
	return fmt.Sprintf("ready on %d of %s: %s", ready, human.Plural(int64(len(s.Standbys)), "standby server"), strings.Join(answers, "; "))
}

// notReady says why the slot would not survive a promotion of the standby.
func notReady(s *slotmon.Standby) string {
	switch {
	case s.Unreachable != "":
		return "cannot be asked: " + s.Unreachable
	case s.Not != "":
		return s.Not
	case s.Slot == nil:
		return "does not have it"
	case s.Slot.Lost():
		return "has it invalidated"
	case s.Slot.Synced == nil || !*s.Slot.Synced:
		return "has one of that name that is not synced"
	}
	return "has it as temporary: not caught up yet"
}

// publication compares it with what is configured.
func (s *Status) publication() string {
	p := s.Publication
	switch {
	case p == nil:
		return ""
	case !p.Exists:
		return p.Name + " does not exist"
	}
	var faults []string
	if !p.Inserts {
		faults = append(faults, "does not publish INSERT")
	}
	for _, fault := range []struct {
		text   string
		tables []string
	}{
		{"does not contain", p.Missing}, {"has a row filter or column list for", p.Filtered}, {"contains, but UNLOGGED,", p.Unlogged},
	} {
		if len(fault.tables) > 0 {
			faults = append(faults, fault.text+" "+strings.Join(fault.tables, ", "))
		}
	}
	switch {
	case len(faults) > 0:
		return p.Name + " " + strings.Join(faults, "; ")
	case s.Report.Trend.PublicationChanged:
		return p.Name + " was changed while it was looked at"
	case p.Tables == 0:
		return p.Name + " exists; which tables it must publish is not configured (outbox.tables)"
	}
	return p.Name + " publishes every configured table"
}
