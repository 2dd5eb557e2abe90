package scenarios

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
)

func TestPartitionsAddedWhileRunning(t *testing.T) {
	parallel(t)
	partitionsAdded(newStand(t, options{}))
}

// partitionsAdded: keys would move to other partitions, so the stream stops
// until a human has accepted the new count by a restart. It is noticed within
// a minute, also when nothing is written.
func partitionsAdded(s *stand) {
	p := s.run()
	s.load(10, 10)
	s.delivered()
	s.no(s.kafka.AddPartitions(s.ctx, s.topic, 6))
	line := s.awaitLog(p, "blocked")
	s.says(fmt.Sprint(line["error"]), s.topic, "has 6 partitions, it had 3", "order of an aggregate's events is not guaranteed", "restart the publisher")
	if line["slot"] != s.slot {
		s.t.Errorf("the line names slot %v, not %s", line["slot"], s.slot)
	}

	// Aggregates of a name of their own tell what was written afterwards.
	s.prefix = "after"
	s.history()
	s.load(10, 10)
	blocked := s.history()
	s.options.partitions = 6
	accepted := func(o *verify.Options) {
		o.Expect.Partition = func(key []byte, now int32) int32 {
			if !strings.HasPrefix(string(key), "after-") {
				now = 3
			}
			return verify.PartitionOf(key, now)
		}
	}
	report := s.judge(func(o *verify.Options) { accepted(o); o.Incomplete = true })
	if !report.OK() || report.Pending != 100 {
		s.t.Fatalf("while the stream is blocked:\n%s", report.Table())
	}
	if lsn := s.confirmed(); lsn >= blocked[0].CommitEnd {
		s.t.Errorf("%s is confirmed, but the transaction that ends at %s is not delivered", lsn, blocked[0].CommitEnd)
	}
	s.stopBlocked(p)
	s.betweenRuns()
	p = s.run()
	s.delivered()
	s.stop(p)
	if report := s.check(accepted); report.Repeated != 0 {
		s.t.Errorf("%d records repeated", report.Repeated)
	}
}

func TestTopicDeletedAndCreatedAgain(t *testing.T) {
	parallel(t)
	s := newStand(t, options{})
	p := s.run()
	s.recreateTopic(func() { s.awaitLog(p, "stalled") })
	line := s.awaitLog(p, "blocked")
	s.says(fmt.Sprint(line["error"]), s.topic, "was deleted and created again", "all records published to it before are gone", "restart the publisher")
	rows := s.history()
	s.load(5, 10)
	report := s.judge(func(o *verify.Options) { o.Incomplete = true })
	if !report.OK() || report.Records != 0 || report.Pending != len(rows)+50 {
		t.Fatalf("while the stream is blocked:\n%s", report.Table())
	}
	if lsn := s.confirmed(); lsn >= rows[0].CommitEnd {
		t.Errorf("%s is confirmed, but the transaction that ends at %s is not delivered", lsn, rows[0].CommitEnd)
	}
	if code := s.stopBlocked(p); code == 0 {
		t.Errorf("exit 0, which says that everything is delivered\n%s", p.Stderr())
	}
	p = s.run()
	s.delivered()
	s.stop(p)
	// What lay in the old topic is gone by the operator's hand. Everything that
	// was not acknowledged by then is in the new one.
	s.check(nil)
}

func TestTopicCreatedAgainEndsTheProcessIfSoConfigured(t *testing.T) {
	parallel(t)
	s := newStand(t, options{sections: map[string]string{"": "on_stop: exit\n"}})
	p := s.run()
	s.recreateTopic(func() { s.awaitLog(p, "stalled") })
	if code := s.exit(p); code != 4 {
		t.Errorf("exit %d, want 4\n%s", code, p.Stderr())
	}
	s.says(p.Stderr(), s.topic, "was deleted and created again")
	p = s.run()
	s.delivered()
	s.stop(p)
	s.check(nil)
}

// recreateTopic delivers some rows and forgets them, deletes the topic, writes
// more, waits until that is noticed, and creates the topic anew.
func (s *stand) recreateTopic(noticed func()) {
	s.t.Helper()
	s.load(10, 10)
	s.delivered()
	s.history()
	s.rows = nil
	s.no(s.kafka.DeleteTopic(s.ctx, s.topic))
	s.load(10, 10)
	noticed()
	s.createTopics()
}

func TestMissingTopicIsNamedAndHealsByItself(t *testing.T) {
	parallel(t)
	s := newStand(t, options{withoutTopic: true, http: true})
	p := s.run()
	s.load(10, 10)
	line := s.awaitLog(p, "stalled")
	if line["topic"] != s.topic {
		t.Errorf("the log line names topic %v, not %s", line["topic"], s.topic)
	}
	s.until("the stall is named", func() bool {
		return strings.Contains(s.status().text("stall", "cause"), s.topic)
	})
	s.until("the process is not ready", func() bool { return s.get("/readyz").code == http.StatusServiceUnavailable })
	if age := time.Since(s.status().time("stall", "since")); age < readyGrace {
		t.Errorf("not ready after %s already", age)
	}
	s.says(s.get("/readyz").body, "stalled since", s.topic)
	lines := len(p.Log())
	s.createTopics()
	s.delivered()
	s.until("the process is ready again", func() bool { return s.get("/readyz").code == http.StatusOK })
	if more := len(p.Log()) - lines; more > 10 {
		t.Errorf("%d log lines for one topic that is there again\n%s", more, p.Stderr())
	}
	if s.sessions() != 1 {
		t.Errorf("%d sessions, want one", s.sessions())
	}
	s.stop(p)
	s.check(nil)
}
