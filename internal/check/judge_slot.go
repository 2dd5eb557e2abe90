package check

import (
	"fmt"
	"strings"

	"github.com/cdcpub/cdcpub/internal/human"
)

func (j *judge) slotChecks() {
	pg := &j.Postgres
	switch {
	case pg.Unreachable != nil:
		j.skip(slotIDs, "depends on %s", idReachable)
		return
	case pg.Sample == nil:
		j.skip(slotIDs, "could not be read: %s", pg.SampleUnread)
		return
	case j.slot == nil:
		cure := "create it once the publication exists; it begins at that moment, and rows written before are not published"
		j.add(idSlot, fail("slot %s does not exist on this server", j.Setup.Slot).cured(cure, j.Setup.command("init")))
		j.skip(slotIDs[1:], "depends on %s", idSlot)
		return
	}
	j.add(idSlot, ok("slot %s exists", j.slot.Name))
	j.add(idPlugin, j.plugin())
	j.add(idDatabase, j.database())
	for _, id := range []string{idPlugin, idDatabase} {
		if j.failed(id) { // it is somebody else's: nobody may be told to drop it
			j.skip(slotIDs[3:], "depends on %s", id)
			return
		}
	}
	j.add(idTwoPhase, j.twoPhase())
	j.add(idLost, j.lost())
	j.add(idPosition, j.position())
	j.add(idHolder, j.holder())
	j.add(idFailover, j.failover())
	j.add(idAge, j.publicationAge())
}

func (j *judge) plugin() outcome {
	switch {
	case j.slot.Type != "logical":
		return fail("slot %s is a physical slot, which a standby uses", j.slot.Name).cured("name another slot in postgres.slot, and let init create it", j.Setup.command("init"))
	case j.slot.Plugin != "pgoutput":
		return fail("slot %s has the plugin %s, and cdcpub reads pgoutput", j.slot.Name, j.slot.Plugin).cured("name another slot in postgres.slot, and let init create it", j.Setup.command("init"))
	}
	return ok("logical, pgoutput")
}

func (j *judge) database() outcome {
	if j.slot.Type != "logical" {
		return skip("depends on %s", idPlugin)
	}
	if own := j.Postgres.Sample.Server.Database; j.slot.Database != own {
		return fail("slot %s belongs to database %s, and postgres.url leads to %s", j.slot.Name, j.slot.Database, own).cured("correct the database in postgres.url, or name another slot in postgres.slot")
	}
	return ok("belongs to %s", j.slot.Database)
}

func (j *judge) twoPhase() outcome {
	if j.slot.TwoPhase {
		return fail("slot %s has two_phase: rows would arrive at PREPARE TRANSACTION and may still be rolled back", j.slot.Name).
			cured("create the slot anew, without two_phase; rows that it has not delivered must be published again from their table", j.anew()...)
	}
	return ok("off")
}

// anew creates the slot again.
func (j *judge) anew() []string {
	return []string{j.Setup.command("slot", "drop", j.slot.Name), j.Setup.command("slot", "create", j.slot.Name)}
}

func (j *judge) lost() outcome {
	status := "unknown"
	if j.slot.WALStatus != nil {
		status = *j.slot.WALStatus
	}
	switch {
	case j.slot.Lost():
		if j.slot.InvalidationReason != nil {
			status += ", " + *j.slot.InvalidationReason
		}
		return fail("slot %s is lost (%s): WAL that it had not delivered can no longer be read", j.slot.Name, status).
			cured("create it anew; rows committed since its last confirmed position must be published again from their table", j.anew()...)
	case status == "unreserved":
		return fail("slot %s is unreserved: it holds more than max_slot_wal_keep_size, and the next checkpoint may remove WAL that it needs", j.slot.Name).
			cured("raise the limit now, if the disk can spare it, then let cdcpub catch up", fmt.Sprintf("ALTER SYSTEM SET max_slot_wal_keep_size = '%dGB';", j.twiceRetained()), "SELECT pg_reload_conf();")
	}
	return ok("wal_status %s", status)
}

// twiceRetained is in gigabytes, at least 1.
func (j *judge) twiceRetained() int64 {
	const gigabyte = 1 << 30
	if j.slot.RetainedBytes == nil {
		return 1
	}
	return 2**j.slot.RetainedBytes/gigabyte + 1
}

func (j *judge) position() outcome {
	s := j.slot
	switch {
	case s.Lost():
		return skip("depends on %s", idLost)
	case s.ConfirmedFlushLSN == nil:
		return warn("slot %s has no position yet: it is being created, which waits for transactions that write", s.Name).cured("wait, then run check again")
	case s.ConfirmedLagBytes != nil && *s.ConfirmedLagBytes < 0:
		return fail("confirmed_flush_lsn of slot %s is %s, beyond the end of WAL at %s: every row until then would be skipped", s.Name, s.ConfirmedFlushLSN, j.Postgres.Sample.Server.WAL).
			cured("find out who confirmed it (a client that confirms too much, or a server restored to an earlier time); create the slot anew, and publish again what is missing", j.anew()...)
	}
	text := "confirmed " + s.ConfirmedFlushLSN.String()
	if s.ConfirmedLagBytes != nil {
		text += fmt.Sprintf(", %s behind the end of WAL", human.Bytes(*s.ConfirmedLagBytes))
	}
	if s.RetainedBytes != nil {
		text += fmt.Sprintf("; %s of WAL retained", human.Bytes(*s.RetainedBytes))
	}
	return ok("%s", text)
}

// holder: a cdcpub that holds the slot is how it should be.
func (j *judge) holder() outcome {
	if !j.slot.Active {
		return ok("nobody reads the slot")
	}
	h := j.slot.Holder
	if h == nil {
		return ok("somebody reads the slot; a publisher started now waits as standby")
	}
	who := fmt.Sprintf("pid %d", h.PID)
	if h.ApplicationName != "" {
		who = fmt.Sprintf("%q (%s)", h.ApplicationName, who)
	}
	if h.Address != "" {
		who += " from " + h.Address
	}
	if h.Since != nil {
		who += ", since " + human.Moment(*h.Since)
	}
	if strings.HasPrefix(h.ApplicationName, "cdcpub") {
		return ok("%s publishes from it; a publisher started now waits as standby", who)
	}
	return warn("slot %s is read by %s, which does not look like a cdcpub: whoever reads a slot takes its rows, and cdcpub would wait", j.slot.Name, who).
		cured("let every reader have a slot of its own: stop that one, or name another slot in postgres.slot")
}

func (j *judge) failover() outcome {
	sample := j.Postgres.Sample
	standby := ""
	for i := range sample.Slots {
		if s := &sample.Slots[i]; s.Type == "physical" {
			standby = s.Name
		}
	}
	switch {
	case j.slot.Failover != nil && *j.slot.Failover && sample.Server.SyncedStandbys == "":
		return warn("is a failover slot, and synchronized_standby_slots is empty: what is published may be missing on a standby after its promotion").
			cured("name the standbys' physical slots there; publishing then waits for these standbys", "ALTER SYSTEM SET synchronized_standby_slots = 'STANDBY_SLOT';", "SELECT pg_reload_conf();")
	case j.slot.Failover != nil && *j.slot.Failover:
		return ok("is a failover slot; synchronized_standby_slots is %s", sample.Server.SyncedStandbys)
	case standby == "":
		return ok("is no failover slot; no slot of a standby is here")
	case sample.Server.VersionNum < 170000:
		return warn("the server has a standby (slot %s), and PostgreSQL %s has no failover slots: slot %s does not exist after a failover", standby, sample.Server.Version, j.slot.Name).
			cured("know what to do then (create the slot again, publish what is missing from the table), or upgrade to PostgreSQL 17")
	}
	return warn("the server has a standby (slot %s), and slot %s is no failover slot: it does not exist after a failover", standby, j.slot.Name).
		cured("create it anew as one, when everything is published", j.Setup.command("slot", "drop", j.slot.Name), j.Setup.command("slot", "create", j.slot.Name, "--failover"))
}

// publicationAge compares transaction ids: a publication whose row is older
// than the slot's catalog_xmin is seen by every row that the slot decodes. The
// other way round nothing is certain. A new slot inherits the horizon of older
// ones, so nothing is said while there is one as old.
func (j *judge) publicationAge() outcome {
	content, s := j.Postgres.Content, j.slot
	switch {
	case content == nil:
		return skip("depends on %s", idPublication)
	case content.SlotXminAge == nil || s.CatalogXminAge == nil:
		return skip("slot %s has no catalog_xmin", s.Name)
	case content.XminAge > *content.SlotXminAge:
		return ok("the publication is older than what the slot reads next")
	}
	for i := range j.Postgres.Sample.Slots {
		other := &j.Postgres.Sample.Slots[i]
		if other.Name != s.Name && other.CatalogXminAge != nil && *other.CatalogXminAge >= *s.CatalogXminAge {
			return ok("nothing speaks against it, nothing proves it: slot %s is as old", other.Name)
		}
	}
	return warn("publication %s was created or altered after the position of slot %s: if it was created then, PostgreSQL before 18 answers \"publication does not exist\" (42704) at the first row, and 18 passes over it with a notice; cdcpub then stands still", j.Setup.Publication, s.Name).
		cured("if the publication was only altered, nothing; if it is new, the slot must be created anew, and then begins now: first stop cdcpub and save the rows that are not in Kafka, as README says, \"A slot older than its publication\"", j.anew()...)
}
