package slotview

import (
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

// Status is everything that is known of one slot, the document that `cdcpub
// slot status -o json` prints. Members may be added; none changes its name or
// meaning. What is null is not known, not there, or not in this version of
// PostgreSQL.
type Status struct {
	// Verdict is ok, warning, critical or unknown: that of Report.
	Verdict slotmon.Severity `json:"verdict"`
	// Name is the slot's; empty when it is not known which one was meant.
	Name string `json:"name"`
	// Error says why nothing could be looked at: a configuration or an argument
	// that is wrong, one problem a line. A server that cannot be reached, or has
	// no such slot, is a finding.
	Error string `json:"error,omitempty"`
	// ServerName is host:port/database as cdcpub was told it.
	ServerName string `json:"server_name,omitempty"`
	// Taken is when the sample was complete, by the clock of this machine.
	Taken time.Time `json:"taken,omitzero"`
	// SampleSeconds is the time that the rates of Report.Trend are over; null
	// when they are not known.
	SampleSeconds *float64 `json:"sample_seconds"`
	// InactiveSeconds is how long nobody has held the slot; null while it is
	// held. A server before 17 does not remember it: it is then the part of
	// that time that was seen.
	InactiveSeconds *float64 `json:"inactive_seconds"`
	// DecodeBacklogBytes is confirmed_flush_lsn - restart_lsn: WAL that is kept
	// although everything in it that was committed is confirmed.
	DecodeBacklogBytes *int64 `json:"decode_backlog_bytes"`

	// Nearest are the names most like Name when there is no such slot.
	Nearest []string `json:"nearest,omitempty"`

	// Report is the judgement: findings, rates, times until the slot is lost
	// and the volume is full, and the culprit.
	Report slotmon.Report `json:"report"`
	// Slot is the row of pg_replication_slots, with its holder.
	Slot *slotmon.Slot `json:"slot"`
	// Server is the cluster, with the volume that holds pg_wal.
	Server *slotmon.Server `json:"server"`
	// Transactions are the oldest open and all prepared ones.
	Transactions []slotmon.Transaction `json:"transactions"`
	// Publication is compared with the configuration; null for a slot that
	// none is configured for.
	Publication *slotmon.Publication `json:"publication"`
	// Publisher is what the cdcpub at http.advertise says of itself; null for a
	// slot that it does not publish from.
	Publisher *slotmon.Publisher `json:"publisher"`
	// Standbys are those of slot_monitor.standbys, as they were asked.
	Standbys []slotmon.Standby `json:"standbys"`
	// Unseen names what the role may not see, each with the GRANT that is
	// missing.
	Unseen []string `json:"unseen"`

	// Limits are the thresholds that the slot was judged by.
	Limits slotmon.Limits `json:"-"`
}

// NewStatus puts a judged slot together.
func NewStatus(server string, subject slotmon.Subject, report slotmon.Report, limits slotmon.Limits) *Status {
	s := &Status{
		Verdict: report.Verdict, Name: subject.Name, ServerName: server, Report: report, Limits: limits,
		Publisher: subject.Publisher, Standbys: subject.Standbys,
	}
	if over := subject.Trend.Over; over > 0 {
		s.SampleSeconds = seconds(over)
	}
	if inactive := subject.Trend.InactiveFor; inactive != nil {
		s.InactiveSeconds = seconds(*inactive)
	}
	if sample := subject.Sample; sample != nil {
		s.Taken, s.Server, s.Transactions, s.Unseen = sample.Taken, &sample.Server, sample.Transactions, sample.Unseen
		if s.Slot = sample.FindSlot(subject.Name); s.Slot == nil {
			s.Nearest = nearest(subject.Name, sample)
		}
		if subject.Expected != nil {
			s.Publication = sample.Publication
		}
	}
	if slot := s.Slot; slot != nil && !slot.Lost() && slot.RestartLSN != nil && slot.ConfirmedFlushLSN != nil {
		backlog := int64(*slot.ConfirmedFlushLSN) - int64(*slot.RestartLSN)
		s.DecodeBacklogBytes = &backlog
	}
	if s.keepsUp() {
		if s.Report.SecondsToLost == nil && s.Slot.SafeWALSize != nil {
			s.Report.SecondsToLostWhy = keepsUp
		}
		if s.Report.SecondsToFull == nil && s.Server.Volume.FreeBytes != nil {
			s.Report.SecondsToFullWhy = keepsUp
		}
	}
	return s.withoutNull()
}

// keepsUp is said of a slot whose growth is not known from two samples because
// its reader is too near to the end of WAL.
const keepsUp = "the reader keeps up"

func (s *Status) keepsUp() bool {
	return s.Slot != nil && s.Slot.Active && s.Slot.RetainedBytes != nil && s.SampleSeconds != nil &&
		s.Report.Trend.RetainedRate == nil && s.Slot.KeepsUp(s.Report.Trend)
}

// Failed is the status of a slot that could not be looked at for the reason
// that is given: unknown, never fine.
func Failed(name, reason string) *Status {
	s := &Status{Verdict: slotmon.Unknown, Name: name, Error: reason, Report: slotmon.Report{Verdict: slotmon.Unknown}}
	return s.withoutNull()
}

// problems are the lines of Error.
func (s *Status) problems() []string {
	if s.Error == "" {
		return nil
	}
	return strings.Split(strings.TrimSpace(s.Error), "\n")
}

// withoutNull makes lists that are empty out of those that are nil.
func (s *Status) withoutNull() *Status {
	if s.Transactions == nil {
		s.Transactions = []slotmon.Transaction{}
	}
	if s.Standbys == nil {
		s.Standbys = []slotmon.Standby{}
	}
	if s.Unseen == nil {
		s.Unseen = []string{}
	}
	if s.Report.Findings == nil {
		s.Report.Findings = []slotmon.Finding{}
	}
	return s
}

// JSON writes the document.
func (s *Status) JSON(w io.Writer) error { return encode(w, s) }

// encode writes a document for people and programs.
func encode(w io.Writer, document any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}
