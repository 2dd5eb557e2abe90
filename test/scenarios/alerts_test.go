package scenarios

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/slotmon"
	"github.com/cdcpub/cdcpub/test/harness"
)

// alerting configures the monitor in `run` for the patience of a test.
func alerting(w *harness.Webhook) map[string]string {
	return map[string]string{"": fmt.Sprintf(`slot_monitor:
  interval: 1s
  raise_after: 1s
  resolve_after: 2s
  webhook: {url: %s}
  limits:
    stalled: {warning: 2s, critical: 6s}
`, w.URL)}
}

// alert waits for a state of an alert and returns the index behind it.
func (s *stand) alert(w *harness.Webhook, from int, id slotmon.FindingID, status string, severity slotmon.Severity, says ...string) int {
	s.t.Helper()
	var found harness.Alert
	var next int
	s.until(fmt.Sprintf("%s is %s as %s; there is\n%s", id, status, severity, w), func() (ok bool) {
		found, next, ok = w.Find(from, func(a harness.Alert) bool {
			return a.ID == id && a.Slot == s.slot && a.Status == status && a.Severity == severity
		})
		return ok
	})
	s.says(found.Summary+" "+found.Cause+" "+found.Cure, says...)
	return next
}

// metric tells if /metrics has a line with this beginning and end.
func (s *stand) metric(beginning, end string) bool {
	s.t.Helper()
	for line := range strings.Lines(s.get("/metrics").body) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, beginning) && strings.HasSuffix(line, end) {
			return true
		}
	}
	return false
}

// A publisher that Kafka holds up tells so, with the place, and takes it back.
func TestAStalledPublisherRaisesAlerts(t *testing.T) {
	cluster := proxied(t)
	w := harness.NewWebhook(t)
	s := newStand(t, options{kafka: cluster, http: true, sections: alerting(w)})
	p := s.run()
	s.load(20, 10)
	s.delivered()
	s.until("the counters say so", func() bool {
		return s.metric("cdcpub_records_acknowledged_total{topic=", " 200") && s.metric("cdcpub_commit_to_ack_seconds_count", " 200") &&
			s.metric(`cdcpub_publisher_role{role="active"}`, " 1") && s.metric("cdcpub_slot_up{", " 1")
	})
	cluster.Proxy(0).Cut()
	s.load(5, 10)
	next := s.alert(w, 0, slotmon.PublisherStalled, "raised", slotmon.Warning, s.topic)
	next = s.alert(w, next, slotmon.PublisherStalled, "raised", slotmon.Critical, s.topic)
	if s.metric(`cdcpub_publisher_stall_seconds{cause="partition"}`, " 0") {
		t.Error("the metric of the stall is 0")
	}
	s.no(cluster.Proxy(0).Restore())
	s.alert(w, next, slotmon.PublisherStalled, "resolved", slotmon.Critical)
	s.delivered()
	s.stop(p)
	s.check(nil)
}

// A publication that no longer publishes the outbox shows in no message of the
// stream: the monitor sees it, and the publisher stops. Whoever waits for a
// human tells so at once.
func TestAPublicationThatLosesTheOutboxBlocksThePublisher(t *testing.T) {
	parallel(t)
	w := harness.NewWebhook(t)
	s := newStand(t, options{http: true, sections: alerting(w)})
	p := s.run()
	s.load(2, 10)
	s.delivered()
	s.until("the slot was sampled", func() bool { return s.metric("cdcpub_slot_up{", " 1") })
	s.exec("ALTER PUBLICATION " + s.slot + " DROP TABLE outbox")
	s.blockedProcess(p)
	s.alert(w, 0, slotmon.PublicationTables, "raised", slotmon.Critical, "public.outbox")
	s.alert(w, 0, slotmon.PublisherBlocked, "raised", slotmon.Critical)
	if !s.metric(`cdcpub_publisher_state{state="blocked"}`, " 1") || !s.metric("cdcpub_publisher_ready", " 0") {
		t.Error("the metrics do not say that it is blocked")
	}
	s.stopBlocked(p)
	s.check(func(o *verify.Options) { o.Incomplete = true })
}
