package slotmon

import (
	"fmt"

	"github.com/cdcpub/cdcpub/internal/human"
)

// missing: a slot that a publisher needs does not exist; of one that was merely
// asked for, nothing can be said.
func (j *judge) missing() *Finding {
	if j.slot != nil {
		return nil
	}
	if !j.expected() {
		return &Finding{
			ID: SlotMissing, Severity: Unknown, Hold: Unknown,
			Summary: "does not exist on this server", Cure: "`cdcpub slot list` shows the slots that do",
		}
	}
	return atOnce(SlotMissing, "does not exist, and cdcpub needs it",
		"it was dropped, or this server took over without it; rows committed since it was there are in the outbox table only",
		fmt.Sprintf("find out whether this is the right server; then `cdcpub slot create %s` begins at the present end of WAL: what was committed before must be published again from the table", j.subject.Name))
}

func (j *judge) lost() *Finding {
	gone := "what it had not delivered cannot be read from the WAL any more"
	if from := j.slot.ConfirmedFlushLSN; from != nil {
		gone = fmt.Sprintf("WAL from %s to %s is gone for it", *from, j.sample.Server.WAL)
		if lag := j.slot.ConfirmedLagBytes; lag != nil && *lag >= 0 {
			gone += fmt.Sprintf(" (%s)", human.Bytes(float64(*lag)))
		}
	}
	finding := atOnce(SlotLost, "is lost and can never be read again: "+j.lostReason(), gone,
		fmt.Sprintf("`cdcpub slot drop %[1]s`, then `cdcpub slot create %[1]s`; rows committed from that position until the new slot exists must be published again from their table", j.subject.Name))
	switch {
	case j.synced():
		finding.Cure = "the next synchronisation makes the copy anew, if the slot on the primary is valid: look there"
	case !j.expected():
		finding.Cure = fmt.Sprintf("`cdcpub slot drop %s` loses nothing that is not lost already; its reader needs a new slot and a new copy of the data", j.subject.Name)
	}
	return finding
}

// lostReason puts invalidation_reason (17) into words (PostgreSQL
// documentation, pg_replication_slots).
func (j *judge) lostReason() string {
	server := &j.sample.Server
	switch reason := j.slot.InvalidationReason; {
	case reason == nil && j.slot.Conflicting != nil && *j.slot.Conflicting:
		return "it conflicted with recovery on this standby"
	case reason == nil, *reason == "wal_removed":
		why := "WAL that it needed was removed"
		if server.MaxSlotWALKeepSize >= 0 {
			why += fmt.Sprintf(", since it retained more than max_slot_wal_keep_size (%s)", human.Bytes(float64(server.MaxSlotWALKeepSize)))
		}
		if reason != nil {
			why += " (wal_removed)"
		}
		return why
	case *reason == "rows_removed":
		return "catalog rows that it needed were removed (rows_removed)"
	case *reason == "wal_level_insufficient":
		return "wal_level is no longer logical (wal_level_insufficient)"
	case *reason == "idle_timeout":
		why := "nobody used it for longer than idle_replication_slot_timeout"
		if server.IdleSlotTimeout > 0 {
			why += fmt.Sprintf(" (%s)", human.Seconds(server.IdleSlotTimeout.Seconds()))
		}
		return why + " (idle_timeout)"
	default:
		return "invalidated: " + *reason
	}
}

// unreserved: the next checkpoint may take the WAL that it needs.
func (j *judge) unreserved() *Finding {
	safe := j.slot.SafeWALSize
	if !j.isUnreserved() {
		return nil
	}
	summary := "is about to be lost: it is beyond max_slot_wal_keep_size, and the next checkpoint may remove WAL that it needs"
	if safe != nil {
		summary += fmt.Sprintf(" (safe_wal_size %s)", human.Bytes(float64(*safe)))
	}
	finding := atOnce(SlotUnreserved, summary, j.cause(),
		"now, to keep the slot: "+keepSize(j.moreThanRetained())+"; then "+j.cure())
	if safe != nil {
		value := float64(*safe)
		finding.Value, finding.Unit = &value, "bytes"
	}
	return finding
}

func (j *judge) isUnreserved() bool {
	return j.slot.WALStatus != nil && *j.slot.WALStatus == "unreserved" || j.slot.SafeWALSize != nil && *j.slot.SafeWALSize <= 0
}

// moreThanRetained is a value for max_slot_wal_keep_size that gives time: twice
// what is retained, in whole gigabytes.
func (j *judge) moreThanRetained() string {
	need := max(j.sample.Server.MaxSlotWALKeepSize, 0)
	if retained := j.slot.RetainedBytes; retained != nil {
		need = max(need, *retained)
	}
	return fmt.Sprintf("%dGB", 2*(need>>30+1))
}

func (j *judge) wrongPlugin() *Finding {
	if !j.expected() || j.slot.Type == "logical" && j.slot.Plugin == "pgoutput" {
		return nil
	}
	is := "a " + j.slot.Type + " slot"
	if j.slot.Type == "logical" {
		is = "a slot of the plugin " + j.slot.Plugin
	}
	return atOnce(SlotWrongPlugin, "is "+is+"; cdcpub reads logical slots of pgoutput", "",
		"another program's slot has this name: set postgres.slot to another, and `cdcpub slot create` it")
}

func (j *judge) wrongDatabase() *Finding {
	if !j.expected() || j.slot.Database == "" || j.subject.Expected.Database == "" || j.slot.Database == j.subject.Expected.Database {
		return nil
	}
	return atOnce(SlotWrongDatabase, fmt.Sprintf("belongs to database %s, and cdcpub publishes from %s", j.slot.Database, j.subject.Expected.Database), "",
		"correct postgres.url or postgres.slot: a slot reads the database in which it was created")
}

// twoPhase is silent about a slot that is somebody else's: its cure drops the
// slot.
func (j *judge) twoPhase() *Finding {
	if !j.expected() || !j.slot.TwoPhase || j.wrongPlugin() != nil || j.wrongDatabase() != nil {
		return nil
	}
	cure := fmt.Sprintf("`cdcpub slot drop %[1]s`, `cdcpub slot create %[1]s`, and publish what it held from the table: docs/runbook.md#slot_two_phase", j.subject.Name)
	if j.sample.Server.VersionNum >= 18_00_00 {
		cure = fmt.Sprintf("while nothing is prepared and nobody reads it, on a replication connection: ALTER_REPLICATION_SLOT %s (TWO_PHASE false), which keeps its position; or ", j.subject.Name) + cure
	}
	return atOnce(SlotTwoPhase, "has two_phase set: it sends rows at PREPARE TRANSACTION, before it is certain that they commit", "", cure)
}

// ahead: PostgreSQL believes any position that a client confirms, and sends
// nothing below it.
func (j *judge) ahead() *Finding {
	lag := j.slot.ConfirmedLagBytes
	if j.slot.Type == "physical" || lag == nil || *lag >= 0 {
		return nil
	}
	finding := atOnce(SlotAhead, fmt.Sprintf("has confirmed WAL that does not exist yet, %s past its end: every row until there is skipped in silence", human.Bytes(-float64(*lag))),
		"somebody confirmed an impossible position, or the server was restored to an earlier one",
		fmt.Sprintf("stop the publisher; `cdcpub slot drop %[1]s`, `cdcpub slot create %[1]s`; publish the rows of this time again from their table", j.subject.Name))
	value := float64(*lag)
	finding.Value, finding.Unit = &value, "bytes"
	return finding
}
