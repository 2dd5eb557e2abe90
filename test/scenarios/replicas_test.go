package scenarios

import (
	"fmt"
	"strings"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// tooFewInSync: one broker is gone and the topic wants all replicas in sync.
// The stall is named with its place and its cure, and ends by itself.
func tooFewInSync(s *stand) {
	p := s.run()
	s.load(10, 10)
	s.delivered()
	s.history()

	const gone = 1
	s.no(s.kafka.Kill(gone))
	s.no(s.kafka.WaitInSyncCount(s.ctx, s.topic, 2))
	s.load(20, 10)
	s.history()
	s.standsStill(p, "NOT_ENOUGH_REPLICAS (19)", "min.insync.replicas", "bring the missing brokers back", "(replicas on brokers 1, 2, 3; down: 2)")

	s.no(s.kafka.Start(s.ctx, gone))
	s.delivered()
	s.until("nothing stalls", func() bool { return s.status().at("stall") == nil })
	s.stop(p)
	s.uninterrupted()
	s.no(s.kafka.WaitInSync(s.ctx, s.topic))
}

// twoGone: one broker is dead and another hangs. With them the majority of the
// controllers is gone, so nobody can shrink the in-sync replicas: the leader
// appends and waits for the others.
func twoGone(s *stand) {
	p := s.run()
	s.load(10, 10)
	s.delivered()
	s.history()

	const dead, hangs = 1, 2
	s.no(s.kafka.Kill(dead))
	s.no(s.kafka.Freeze(hangs))
	s.load(20, 10)
	s.history()
	s.standsStill(p, "REQUEST_TIMED_OUT (7)", "the brokers of the other replicas")

	s.withoutSamples(func() {
		s.no(s.kafka.Thaw(hangs))
		s.no(s.kafka.Start(s.ctx, dead))
		s.no(s.kafka.WaitInSync(s.ctx, s.topic))
	})
	s.delivered()
	s.until("nothing stalls", func() bool { return s.status().at("stall") == nil })
	s.stop(p)
	s.check(nil)
}

// standsStill waits until a partition of the topic stands still for a reason.
// /status, the log and `slot status` name the place and the reason, and the LSN
// does not pass the first row that has not arrived.
func (s *stand) standsStill(p *harness.Process, reason string, says ...string) {
	s.t.Helper()
	var cause string
	s.until("a partition stands still: "+reason, func() bool {
		status := s.status()
		partitions, _ := status.at("kafka", "partitions").([]any)
		for i := range partitions {
			n := fmt.Sprint(i)
			cause = status.text("kafka", "partitions", n, "stall")
			if strings.Contains(cause, reason) && status.text("kafka", "partitions", n, "topic") == s.topic {
				return true
			}
		}
		return false
	})
	s.says(cause, says...)
	s.until("the stall is named", func() bool { return s.status().at("stall") != nil })
	s.says(s.status().text("stall", "cause"), "topic "+s.topic+" partition ")
	line := s.awaitLog(p, "stalled")
	if line["topic"] != s.topic || line["partition"] == nil || line["slot"] != s.slot {
		s.t.Errorf("the line names topic %v, partition %v, slot %v", line["topic"], line["partition"], line["slot"])
	}
	s.keepaliveBeyond()
	if lsn := s.confirmed(); lsn >= s.rows[len(s.rows)-1].CommitEnd {
		s.t.Errorf("%s is confirmed although rows stand still", lsn)
	}
}

// uncleanElection: a replica without the newest records becomes the leader.
// Acknowledged records are gone, as the topic's configuration allows. The log
// says which, and what comes later is published.
func uncleanElection(s *stand) {
	p := s.run()
	s.load(10, 10)
	s.delivered()
	s.history()
	replicas, err := s.kafka.Replicas(s.ctx, s.topic)
	s.no(err)
	ahead, behind := replicas[0][0], replicas[0][1]
	s.no(s.kafka.Kill(behind))
	s.no(s.kafka.WaitInSyncCount(s.ctx, s.topic, 1))
	s.load(5, 10)
	s.delivered()
	gone := map[string]bool{}
	for _, row := range s.history() {
		gone[row.EventID] = true
	}
	s.no(s.kafka.Kill(ahead))
	s.no(s.kafka.Start(s.ctx, behind))
	s.no(s.kafka.WaitLeader(s.ctx, s.topic, 0, behind))
	s.load(5, 10)
	line := s.awaitLog(p, "kafka_log_truncated")
	s.says(fmt.Sprint(line["msg"]), "Kafka has lost records", "publish what is missing", "unclean.leader.election.enable")
	if line["topic"] != s.topic || line["partition"] != 0.0 || line["first_offset"] != 100.0 || line["last_offset"] != 149.0 {
		s.t.Errorf("offsets 100 to 149 of %s are lost; the line says %v", s.topic, line)
	}
	s.delivered()
	s.no(s.kafka.Start(s.ctx, ahead))
	s.no(s.kafka.WaitInSync(s.ctx, s.topic))
	s.load(5, 10)
	s.delivered()
	s.stop(p)
	report := s.check(func(o *verify.Options) { o.Quarantined = gone })
	if report.Quarantined != len(gone) {
		s.t.Errorf("%d rows given up, want %d", report.Quarantined, len(gone))
	}
}
