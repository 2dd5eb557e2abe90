package slotview

import (
	"fmt"
	"strings"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/slotmon"
)

// fact is a row of the screen.
type fact struct{ label, text string }

// facts are everything that was seen, whatever the verdict, in the order in
// which one looks for it: who reads, what is held, how long it may go on, and
// the rest.
func (s *Status) facts() []fact {
	var rows []fact
	add := func(label, text string) {
		if text != "" {
			rows = append(rows, fact{label, text})
		}
	}
	if s.Slot != nil && s.Server != nil {
		add("Holder", s.holder())
	}
	add("Nearest names", strings.Join(s.Nearest, ", "))
	add("Publisher", s.publisher())
	if s.Slot != nil && s.Server != nil {
		add("Inactive", s.inactive())
		add("Retained WAL", s.retained())
		add("Confirmed lag", s.confirmed())
		add("Decode backlog", s.backlog())
		add("WAL status", s.walStatus())
		add("Time to lost", s.timeToLost())
		add("Time to full", s.until(s.Report.SecondsToFull, s.Report.SecondsToFullWhy))
	}
	if s.Server != nil {
		add("Volume", s.volume())
	}
	if s.Slot != nil && s.Server != nil {
		add("Spilled", s.spilled())
		add("catalog_xmin", s.xmin())
		add("Invalidation", s.invalidation())
		add("Failover", s.failover())
		add("Slot", s.kind())
	}
	add("Publication", s.publication())
	if s.Server != nil {
		add("Transactions", s.transactions())
		add("Positions", s.positions())
	}
	for _, unseen := range s.Unseen {
		add("Not visible", unseen)
	}
	if !s.Taken.IsZero() {
		add("Sampled", s.sampled())
	}
	return rows
}

func (s *Status) retained() string {
	switch {
	case s.Slot.Lost():
		return "none: the slot is lost"
	case s.Slot.RetainedBytes == nil:
		return "none yet: restart_lsn is NULL"
	}
	text := human.Bytes(*s.Slot.RetainedBytes)
	trend := s.Report.Trend
	switch {
	case s.keepsUp():
		text += "; " + keepsUp
	case trend.RetainedRate == nil:
		return text + "; growth not known from one sample"
	case *trend.RetainedRate >= 1:
		text += ", growing by " + human.BytesPerSecond(*trend.RetainedRate)
	case *trend.RetainedRate <= -1:
		text += ", shrinking by " + human.BytesPerSecond(-*trend.RetainedRate)
	default:
		text += ", not growing"
	}
	if trend.WALRate != nil {
		text += "; the server writes " + human.BytesPerSecond(*trend.WALRate)
	}
	return text
}

func (s *Status) confirmed() string {
	switch lag := s.Slot.ConfirmedLagBytes; {
	case s.Slot.Type == "physical":
		return ""
	case lag == nil:
		return "not known: confirmed_flush_lsn is NULL"
	case *lag < 0:
		return human.Bytes(*lag) + ": WAL that the server does not have was confirmed"
	case s.Slot.Lost():
		return human.Bytes(*lag) + " behind the end of WAL, which can no longer be read by it"
	default:
		text := human.Bytes(*lag) + " behind the end of WAL"
		if confirmed := s.Report.Trend.ConfirmedRate; confirmed != nil && s.Slot.Active {
			text += "; confirms " + human.BytesPerSecond(*confirmed)
		}
		return text
	}
}

func (s *Status) backlog() string {
	if s.DecodeBacklogBytes == nil {
		return ""
	}
	return human.Bytes(*s.DecodeBacklogBytes) + " from restart_lsn to confirmed_flush_lsn"
}

func (s *Status) walStatus() string {
	status := "none: the slot has never reserved WAL"
	if s.Slot.WALStatus != nil {
		status = *s.Slot.WALStatus
	}
	limit := s.Server.MaxSlotWALKeepSize
	if limit < 0 {
		return status + "; max_slot_wal_keep_size is -1: no limit"
	}
	bound := "max_slot_wal_keep_size " + human.Bytes(limit)
	switch safe := s.Slot.SafeWALSize; {
	case safe == nil:
		return status + "; safe_wal_size is NULL; " + bound
	case *safe < 0:
		return fmt.Sprintf("%s; safe_wal_size %s, past the limit: lost at the next checkpoint; %s", status, human.Bytes(*safe), bound)
	default:
		return fmt.Sprintf("%s; safe_wal_size %s of %s", status, human.Bytes(*safe), bound)
	}
}

func (s *Status) timeToLost() string {
	if s.Slot.Lost() {
		return "it is lost"
	}
	return s.until(s.Report.SecondsToLost, s.Report.SecondsToLostWhy)
}

// until is a time that is left, or why none can be given.
func (s *Status) until(secs *float64, why string) string {
	switch {
	case secs != nil && *secs < 1:
		return "any moment"
	case secs != nil:
		return human.Seconds(*secs) + " at the present rate"
	case why == "":
		return "not known"
	}
	return why
}

func (s *Status) volume() string {
	v := s.Server.Volume
	text := "free bytes not known: " + v.Unknown
	if v.FreeBytes != nil {
		text = human.Bytes(*v.FreeBytes) + " free"
		if v.SizeBytes != nil {
			text += " of " + human.Bytes(*v.SizeBytes)
		}
		if v.Source != "" {
			text += " (" + v.Source + ")"
		}
	} else if v.Unknown == "" {
		text = "free bytes not known"
	}
	if s.Server.WALDirectoryBytes != nil {
		text += "; pg_wal has " + human.Bytes(*s.Server.WALDirectoryBytes)
	}
	return text
}

func (s *Status) spilled() string {
	switch spill := s.Slot.Spill; {
	case s.Slot.Type == "physical":
		return ""
	case spill == nil && s.Server.VersionNum < 140000:
		return "not counted before PostgreSQL 14"
	case spill == nil:
		return "nothing was decoded yet"
	case spill.TotalBytes == 0 && spill.Transactions == 0:
		return "nothing was decoded yet"
	case spill.Transactions == 0:
		return fmt.Sprintf("nothing of the %s decoded", human.Bytes(spill.TotalBytes))
	default:
		return fmt.Sprintf("%s in %s, beyond logical_decoding_work_mem; %s decoded",
			human.Bytes(spill.Bytes), human.Plural(spill.Transactions, "transaction"), human.Bytes(spill.TotalBytes))
	}
}

func (s *Status) xmin() string {
	if s.Slot.CatalogXminAge == nil {
		return ""
	}
	text := "age " + human.Plural(*s.Slot.CatalogXminAge, "transaction")
	if s.Server.AutovacuumFreeze > 0 {
		text += " (autovacuum_freeze_max_age " + human.Count(s.Server.AutovacuumFreeze) + ")"
	}
	return text
}

func (s *Status) invalidation() string {
	switch reason := s.Slot.InvalidationReason; {
	case reason != nil:
		return *reason
	case s.Slot.Conflicting != nil && *s.Slot.Conflicting:
		return "conflicts with recovery"
	case s.Slot.Lost():
		return "lost: max_slot_wal_keep_size was exceeded"
	default:
		return "none"
	}
}

// kind is what the slot is.
func (s *Status) kind() string {
	parts := []string{s.Slot.Type}
	if s.Slot.Plugin != "" {
		parts = append(parts, "plugin "+s.Slot.Plugin)
	}
	if s.Slot.Database != "" {
		parts = append(parts, "database "+s.Slot.Database)
	}
	if s.Slot.TwoPhase {
		parts = append(parts, "two_phase")
	}
	if s.Slot.Temporary {
		parts = append(parts, "temporary")
	}
	return strings.Join(parts, ", ")
}

func (s *Status) transactions() string {
	if len(s.Transactions) == 0 {
		return ""
	}
	oldest := &s.Transactions[0]
	for i := range s.Transactions {
		if s.Transactions[i].Writes { // only such hold restart_lsn
			oldest = &s.Transactions[i]
			break
		}
	}
	text := "oldest: " + s.transaction(oldest)
	if more := len(s.Transactions) - 1; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}

func (s *Status) transaction(t *slotmon.Transaction) string {
	text := fmt.Sprintf("PID %d", t.PID)
	if t.GID != "" {
		text = fmt.Sprintf("prepared %q", t.GID)
	}
	if t.ApplicationName != "" {
		text += " " + t.ApplicationName
	}
	if t.State != "" {
		text += ", " + t.State
	}
	if t.Database != "" {
		text += ", database " + t.Database
	}
	if !t.Writes {
		text += ", has written nothing"
	}
	text += ", began " + moment(t.Began, s.Server.Now)
	if t.QueryStarted != nil {
		text += ", last query " + moment(*t.QueryStarted, s.Server.Now)
	}
	return text
}

func (s *Status) positions() string {
	text := "end of WAL " + s.Server.WAL.String()
	if s.Slot == nil {
		return text
	}
	if s.Slot.ConfirmedFlushLSN != nil {
		text += ", confirmed_flush_lsn " + s.Slot.ConfirmedFlushLSN.String()
	}
	if s.Slot.RestartLSN != nil {
		text += ", restart_lsn " + s.Slot.RestartLSN.String()
	}
	return text
}

func (s *Status) sampled() string {
	text := s.Taken.UTC().Format("2006-01-02 15:04:05 UTC")
	if s.SampleSeconds != nil {
		text += fmt.Sprintf(", rates over %.1f s", *s.SampleSeconds)
	}
	return text
}
