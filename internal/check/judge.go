package check

import (
	"fmt"
	"slices"
	"strings"
)

// IDs are all checks, in the order of a Report. serverIDs and so on are its
// parts.
func IDs() []string {
	return slices.Concat([]string{idReachable, idReplication}, serverIDs, publicationIDs, slotIDs, outboxIDs, []string{idKafka}, clusterIDs, topicIDs, []string{idListen})
}

// The checks. doc.go says what may change.
const (
	idReachable   = "postgres.reachable"
	idReplication = "postgres.replication"
	idVersion     = "postgres.version"
	idPrimary     = "postgres.primary"
	idWALLevel    = "postgres.wal_level"
	idSlots       = "postgres.slots"
	idSenders     = "postgres.wal_senders"
	idRole        = "postgres.role"
	idMonitor     = "postgres.monitor"
	idSession     = "postgres.session"
	idDirect      = "postgres.direct"
	idClock       = "postgres.clock"
	idWALLimit    = "postgres.slot_wal_limit"
	idIdle        = "postgres.idle_slot_timeout"

	idPublication = "publication.exists"
	idInserts     = "publication.inserts"
	idPublished   = "publication.tables"
	idFilters     = "publication.filters"
	idViaRoot     = "publication.via_root"

	idSlot     = "slot.exists"
	idPlugin   = "slot.plugin"
	idDatabase = "slot.database"
	idTwoPhase = "slot.two_phase"
	idLost     = "slot.lost"
	idPosition = "slot.position"
	idHolder   = "slot.holder"
	idFailover = "slot.failover"
	idAge      = "slot.publication_age"

	idTable    = "outbox.exists"
	idColumns  = "outbox.columns"
	idTypes    = "outbox.types"
	idNotNull  = "outbox.not_null"
	idUnique   = "outbox.unique"
	idUnlogged = "outbox.logged"

	idKafka      = "kafka.reachable"
	idBrokers    = "kafka.brokers"
	idProducerID = "kafka.producer_id"
	idFencing    = "kafka.fencing"
	idAutoCreate = "kafka.auto_create"

	idTopicNames  = "topic.names"
	idTopic       = "topic.exists"
	idPartitions  = "topic.partitions"
	idWrite       = "topic.write"
	idReplicas    = "topic.replication"
	idInSync      = "topic.in_sync"
	idMinInSync   = "topic.min_insync"
	idUnclean     = "topic.unclean_election"
	idMessageSize = "topic.message_size"
	idCleanup     = "topic.cleanup"
	idTimestamps  = "topic.timestamps"
	idRetention   = "topic.retention"

	idListen = "http.listen"
)

var (
	serverIDs      = []string{idVersion, idPrimary, idWALLevel, idSlots, idSenders, idRole, idMonitor, idSession, idDirect, idClock, idWALLimit, idIdle}
	publicationIDs = []string{idPublication, idInserts, idPublished, idFilters, idViaRoot}
	slotIDs        = []string{idSlot, idPlugin, idDatabase, idTwoPhase, idLost, idPosition, idHolder, idFailover, idAge}
	outboxIDs      = []string{idTable, idColumns, idTypes, idNotNull, idUnique, idUnlogged}
	clusterIDs     = []string{idBrokers, idProducerID, idFencing, idAutoCreate}
	topicIDs       = []string{idTopicNames, idTopic, idPartitions, idWrite, idReplicas, idInSync, idMinInSync, idUnclean, idMessageSize, idCleanup, idTimestamps, idRetention}
)

// Judge makes the results of the facts, in the order of IDs.
func Judge(facts *Facts) []Result {
	j := &judge{Facts: facts}
	if sample := facts.Postgres.Sample; sample != nil {
		j.slot = sample.FindSlot(facts.Setup.Slot)
	}
	j.reachable()
	j.replication()
	j.server()
	j.publication()
	j.slotChecks()
	j.outbox()
	j.kafka()
	j.topics()
	j.add(idListen, j.Facts.Listen.judge())
	order := IDs()
	slices.SortStableFunc(j.results, func(a, b Result) int {
		return slices.Index(order, a.ID) - slices.Index(order, b.ID)
	})
	return j.results
}

// judge is one call of Judge. The results of later checks may depend on those
// of earlier ones.
type judge struct {
	*Facts
	slot    *slotRow
	results []Result
}

// outcome is a Result without what it is about.
type outcome struct {
	status   Status
	found    string
	cure     string
	commands []string
}

func ok(format string, args ...any) outcome {
	return outcome{status: OK, found: fmt.Sprintf(format, args...)}
}

func warn(format string, args ...any) outcome {
	return outcome{status: Warn, found: fmt.Sprintf(format, args...)}
}

func fail(format string, args ...any) outcome {
	return outcome{status: Fail, found: fmt.Sprintf(format, args...)}
}

func skip(format string, args ...any) outcome {
	return outcome{status: Skip, found: fmt.Sprintf(format, args...)}
}

// cured adds what to do about it.
func (o outcome) cured(cure string, commands ...string) outcome {
	o.cure, o.commands = cure, commands
	return o
}

func (j *judge) add(id string, o outcome) {
	j.results = append(j.results, Result{ID: id, Status: o.status, Found: o.found, Cure: o.cure, Commands: o.commands})
}

// addFor adds outcomes of several subjects. Those with the same outcome share a
// result, which then has the commands of all of them.
func (j *judge) addFor(id, subject string, o outcome) {
	for i := range j.results {
		r := &j.results[i]
		if r.ID == id && len(r.Subjects) > 0 && r.Status == o.status && r.Found == o.found && r.Cure == o.cure {
			r.Subjects = append(r.Subjects, subject)
			for _, command := range o.commands {
				if !slices.Contains(r.Commands, command) {
					r.Commands = append(r.Commands, command)
				}
			}
			return
		}
	}
	j.add(id, o)
	j.results[len(j.results)-1].Subjects = []string{subject}
}

// skip adds a Skip for every check.
func (j *judge) skip(ids []string, format string, args ...any) {
	for _, id := range ids {
		j.add(id, skip(format, args...))
	}
}

// failed tells if a check has failed already.
func (j *judge) failed(id string) bool {
	return slices.ContainsFunc(j.results, func(r Result) bool { return r.ID == id && r.Status == Fail })
}

// list joins names: "a, b and 7 more".
func list(names []string) string {
	const most = 6
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most-1], ", "), len(names)-most+1)
}

// judge: where the publisher cannot listen it does not start.
func (l *Listen) judge() outcome {
	switch {
	case l.Address == "":
		return ok("off: no status page, metrics or probes")
	case l.Refused == "":
		return ok("nothing listens at %s yet", l.Address)
	case l.Ours:
		return ok("the publisher of this slot answers at %s", l.Address)
	}
	return warn("cdcpub would not start on this machine: %s", l.Refused).
		cured("state another address in http.listen, a different one for each cdcpub of a machine, or end what is there")
}

// plural is "1 row" or "2 rows".
func plural[N int | int32 | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
