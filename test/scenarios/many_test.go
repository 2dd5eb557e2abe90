package scenarios

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// number is the value of a metric without labels.
func (s *stand) number(name string) float64 {
	s.t.Helper()
	for line := range strings.Lines(s.get("/metrics").body) {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), name+" "); found {
			value, err := strconv.ParseFloat(text, 64)
			s.no(err)
			return value
		}
	}
	s.t.Fatalf("no metric %s", name)
	return 0
}

// Two hundred aggregate types, each with a topic: they share the process's
// connections and window, and each has its own order.
func TestManyTopics(t *testing.T) {
	parallel(t)
	kinds := make([]string, 200)
	for i := range kinds {
		kinds[i] = fmt.Sprintf("kind%03d", i)
	}
	s := newStand(t, options{types: kinds, http: true, sections: map[string]string{"kafka": "  linger: 0s\n"}})
	p := s.run()
	for round := range 20 {
		s.exec(`INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
			SELECT 'kind' || to_char(i % 200, 'FM000'), 'a-' || i / 200, $1, 'T', jsonb_build_object('n', i) FROM generate_series(0, 999) i`, round)
	}
	s.delivered()
	s.bounded()
	s.stop(p)
	topics := func(r verify.Row) string { return s.topicOf(r.AggregateType) }
	if report := s.check(func(o *verify.Options) { o.Expect.Topic = topics }); report.Events != 20_000 {
		t.Errorf("%d events, want 20000", report.Events)
	}
}

// One topic of two hundred partitions.
func TestManyPartitions(t *testing.T) {
	parallel(t)
	s := newStand(t, options{partitions: 200, http: true})
	p := s.run()
	s.exec(`INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		SELECT 'order', 'a-' || i % 1000, i / 1000, 'T', jsonb_build_object('n', i) FROM generate_series(0, 19999) i`)
	s.load(200, 10)
	s.delivered()
	s.bounded()
	s.stop(p)
	if report := s.check(nil); report.Events != 22_000 {
		t.Errorf("%d events, want 22000", report.Events)
	}
}

// maxGoroutines of a process with a single broker: they must not grow with the
// number of topics or partitions.
const maxGoroutines = 100

func (s *stand) bounded() {
	s.t.Helper()
	goroutines := s.number("go_goroutines")
	if goroutines > maxGoroutines {
		s.t.Errorf("%v goroutines, want %d at most", goroutines, maxGoroutines)
	}
	s.t.Logf("%v goroutines, %v bytes resident", goroutines, s.number("process_resident_memory_bytes"))
}
