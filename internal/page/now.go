package page

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/slotmon"
)

// nowAnswer is the answer of /page/now. Times are Unix milliseconds, 0 for
// never; sizes bytes; an absent number is not known.
type nowAnswer struct {
	Version    string           `json:"version"`
	NowMS      int64            `json:"now_ms"`
	PollMS     int64            `json:"poll_ms"`
	Verdict    slotmon.Severity `json:"verdict"`
	Headline   string           `json:"headline"`
	Publisher  *nowPublisher    `json:"publisher,omitempty"`
	Cards      []nowCard        `json:"cards"`
	Sinks      []nowSink        `json:"failing_sinks"`
	Servers    []nowServer      `json:"servers"`
	Slots      []nowSlot        `json:"slots"`
	Partitions []nowPartition   `json:"partitions"`
	// PartitionsHidden counts those that are not listed.
	PartitionsHidden int `json:"partitions_hidden"`
}

type nowPublisher struct {
	State        publisher.State  `json:"state"`
	SinceMS      int64            `json:"since_ms"`
	Role         string           `json:"role"`
	Verdict      slotmon.Severity `json:"verdict"`
	Slot         string           `json:"slot"`
	ConfirmedLSN string           `json:"confirmed_lsn,omitempty"`
	Records      int              `json:"in_flight_records"`
	Bytes        int              `json:"in_flight_bytes"`
	Full         bool             `json:"window_full"`
	// Kafka is absent without a session.
	Kafka *bool     `json:"kafka_connected,omitempty"`
	Stall *nowStall `json:"stall,omitempty"`
}

type nowStall struct {
	Cause   string `json:"cause"`
	SinceMS int64  `json:"since_ms"`
}

// nowCard is a finding of the latest sample, an alert, or both.
type nowCard struct {
	Server   string            `json:"server,omitempty"`
	Slot     string            `json:"slot,omitempty"`
	ID       slotmon.FindingID `json:"id"`
	Standing standing          `json:"standing"`
	Severity slotmon.Severity  `json:"severity"`
	// Alert is the severity of the alert, absent if none is raised; it may be
	// behind Severity. SinceMS is when that began.
	Alert   *slotmon.Severity `json:"alert,omitempty"`
	SinceMS int64             `json:"since_ms"`
	Summary string            `json:"summary"`
	Cause   string            `json:"cause,omitempty"`
	Cure    string            `json:"cure,omitempty"`
	Runbook string            `json:"runbook"`
}

type nowSink struct {
	Name   string `json:"name"`
	Error  string `json:"error"`
	SentMS int64  `json:"sent_ms"`
}

type nowServer struct {
	Name    string           `json:"name"`
	Verdict slotmon.Severity `json:"verdict"`
	// Trouble says why the numbers are not fresh; they are then of TakenMS.
	Trouble string   `json:"trouble,omitempty"`
	TakenMS int64    `json:"taken_ms"`
	Version string   `json:"version,omitempty"`
	Standby bool     `json:"in_recovery"`
	Keep    *int64   `json:"max_slot_wal_keep_size,omitempty"` // -1: no limit
	Free    *int64   `json:"free_bytes,omitempty"`
	FreeWhy string   `json:"free_unknown,omitempty"`
	Unseen  []string `json:"unseen,omitempty"`
}

type nowSlot struct {
	Server    string           `json:"server"`
	Name      string           `json:"slot"`
	Ours      bool             `json:"ours"`
	Fresh     bool             `json:"fresh"`
	Verdict   slotmon.Severity `json:"verdict"`
	Missing   bool             `json:"missing"`
	Gone      bool             `json:"lost"`
	Plugin    string           `json:"plugin,omitempty"`
	Database  string           `json:"database,omitempty"`
	Active    bool             `json:"active"`
	Holder    string           `json:"holder,omitempty"`
	Retained  *int64           `json:"retained,omitempty"`
	Lag       *int64           `json:"lag,omitempty"`
	WALStatus string           `json:"wal_status,omitempty"`
	// Reason is the worst finding, Culprit who holds the WAL.
	Reason  string   `json:"reason,omitempty"`
	Culprit string   `json:"culprit,omitempty"`
	Lost    *float64 `json:"seconds_to_lost,omitempty"`
	LostWhy string   `json:"seconds_to_lost_unknown,omitempty"`
	Full    *float64 `json:"seconds_to_full,omitempty"`
	FullWhy string   `json:"seconds_to_full_unknown,omitempty"`
}

type nowPartition struct {
	Topic string `json:"topic"`
	// Partition is -1 while the topic's metadata is missing.
	Partition int32  `json:"partition"`
	Queued    int    `json:"queued"`
	OldestMS  int64  `json:"oldest_ms"`
	Stall     string `json:"stall,omitempty"`
}

// maxPartitions is how many partitions are listed, the oldest first.
const maxPartitions = 100

func describe(o *observation, version string, poll time.Duration) nowAnswer {
	answer := nowAnswer{
		Version: version, NowMS: o.at.UnixMilli(), PollMS: poll.Milliseconds(),
		Verdict: verdict(o), Headline: headline(o), Publisher: describePublisher(o.publisher),
		Cards: []nowCard{}, Sinks: []nowSink{}, Servers: []nowServer{}, Slots: []nowSlot{},
	}
	answer.Partitions, answer.PartitionsHidden = describePartitions(o.publisher)
	for _, c := range cards(o) {
		answer.Cards = append(answer.Cards, describeCard(&c))
	}
	for _, s := range o.monitor.Sinks {
		if s.LastError != "" {
			answer.Sinks = append(answer.Sinks, nowSink{s.Name, s.LastError, milliseconds(s.LastSent)})
		}
	}
	answer.Servers = append(answer.Servers, describeServers(o)...)
	for _, r := range rank(o) {
		answer.Slots = append(answer.Slots, describeSlot(&r))
	}
	return answer
}

func describeCard(c *card) nowCard {
	described := nowCard{
		Server: c.server, Slot: c.slot, ID: c.finding.ID, Standing: c.standing, Severity: c.finding.Severity,
		Summary: c.finding.Summary, Cause: c.finding.Cause, Cure: c.finding.Cure,
		Runbook: runbook + url.PathEscape(string(c.finding.ID)),
	}
	if c.alert != nil {
		described.Alert, described.SinceMS = &c.alert.Severity, milliseconds(c.alert.Since)
	}
	return described
}

func describePublisher(s *publisher.Status) *nowPublisher {
	if s == nil {
		return nil
	}
	p := &nowPublisher{
		State: s.State, SinceMS: milliseconds(s.Since), Role: role(s), Verdict: publisherVerdict(s), Slot: s.Slot,
		ConfirmedLSN: s.ConfirmedLSN, Records: s.InFlight.Records, Bytes: s.InFlight.Bytes, Full: s.InFlight.Full,
	}
	if s.Kafka != nil {
		p.Kafka = &s.Kafka.Connected
	}
	if s.Stall != nil {
		p.Stall = &nowStall{s.Stall.Cause, milliseconds(s.Stall.Since)}
	}
	return p
}

// role is none for a publisher that neither holds the slot nor waits for
// another one that does.
func role(s *publisher.Status) string {
	if s.Role == "standby" && s.State != publisher.Standby {
		return "none"
	}
	return s.Role
}

func describePartitions(s *publisher.Status) (listed []nowPartition, hidden int) {
	listed = []nowPartition{}
	if s == nil || s.Kafka == nil {
		return listed, 0
	}
	for _, p := range s.Kafka.Partitions {
		listed = append(listed, nowPartition{p.Topic, p.Partition, p.Queued, milliseconds(p.OldestSince), p.Stall})
	}
	slices.SortStableFunc(listed, func(a, b nowPartition) int {
		return cmp.Or(cmp.Compare(a.OldestMS, b.OldestMS), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	hidden = max(0, len(listed)-maxPartitions)
	return listed[:len(listed)-hidden], hidden
}

func describeServers(o *observation) (servers []nowServer) {
	for i := range o.monitor.Servers {
		s := &o.monitor.Servers[i]
		server := nowServer{Name: s.Name, Verdict: serverVerdict(s, o)}
		if !fresh(s, o) {
			server.Trouble = staleness(s)
		}
		if sample := s.Sample; sample != nil {
			server.TakenMS = milliseconds(sample.Taken)
			server.Version, server.Standby = sample.Server.Version, sample.Server.InRecovery
			server.Keep = &sample.Server.MaxSlotWALKeepSize
			server.Free, server.FreeWhy = sample.Server.Volume.FreeBytes, sample.Server.Volume.Unknown
			server.Unseen = sample.Unseen
		}
		servers = append(servers, server)
	}
	return servers
}

func describeSlot(r *ranked) nowSlot {
	report := &r.slot.Report
	slot := nowSlot{
		Server: r.server.Name, Name: r.slot.Name, Ours: r.slot.Ours, Fresh: r.fresh, Verdict: report.Verdict,
		Missing: r.slot.Slot == nil, Culprit: report.Culprit,
		Lost: report.SecondsToLost, LostWhy: report.SecondsToLostWhy,
		Full: report.SecondsToFull, FullWhy: report.SecondsToFullWhy,
	}
	if finding := worst(report); finding != nil && !saidByTimeLeft(finding, report) {
		slot.Reason = finding.Summary
	}
	s := r.slot.Slot
	if s == nil {
		return slot
	}
	slot.Plugin, slot.Database, slot.Active = cmp.Or(s.Plugin, s.Type), s.Database, s.Active
	slot.Holder = holder(s.Holder)
	slot.Retained, slot.Lag = s.RetainedBytes, s.ConfirmedLagBytes
	if s.WALStatus != nil {
		slot.WALStatus = *s.WALStatus
	}
	if s.Lost() {
		slot.WALStatus = cmp.Or(slot.WALStatus, "lost")
		slot.Gone, slot.Culprit = true, "" // the reason says it
	}
	return slot
}

// saidByTimeLeft tells if the finding is nothing but a time that is shown beside
// it.
func saidByTimeLeft(f *slotmon.Finding, r *slotmon.Report) bool {
	return f.ID == slotmon.TimeToLost && r.SecondsToLost != nil || f.ID == slotmon.TimeToFull && r.SecondsToFull != nil
}

// holder is one line about who holds a slot: cdcpub@10.0.3.7 pid 4711.
func holder(h *slotmon.Holder) string {
	if h == nil {
		return ""
	}
	text := cmp.Or(h.ApplicationName, h.User)
	if h.Address != "" {
		text += "@" + h.Address
	}
	return strings.TrimSpace(fmt.Sprintf("%s pid %d", text, h.PID))
}

func milliseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
