package scenarios

import (
	"slices"
	"time"
)

// moveLimit is how long rows may wait for us once the cluster has moved its
// leaders. What the cluster itself takes does not count.
const moveLimit = 15 * time.Second

// leadersMoved: no broker dies, but an operator moves leaders and copies, time
// and again, while writers go on.
func leadersMoved(s *stand) {
	p := s.run()
	written := s.underLoad()
	for round := range 6 {
		replicas, err := s.kafka.Replicas(s.ctx, s.topic)
		s.no(err)
		for partition, brokers := range replicas {
			if round%2 == 0 {
				slices.Reverse(brokers) // the other copy is to lead
				continue
			}
			// Both copies move on to the next brokers.
			replicas[partition] = []int{(brokers[0] + 1) % 3, (brokers[1] + 1) % 3}
		}
		s.no(s.kafka.Reassign(s.ctx, s.topic, replicas))
		s.no(s.kafka.ElectPreferred(s.ctx, s.topic))
		s.flowsOn()
	}
	written()
	s.delivered()
	s.stop(p)
	s.uninterrupted()
}

// rollingRestart: what an upgrade of the cluster does. The controller moves,
// too.
func rollingRestart(s *stand) {
	p := s.run()
	written := s.underLoad()
	moves := 0
	for broker := range 3 {
		before := s.controller(func(int) bool { return true })
		s.no(s.kafka.Stop(broker))
		// The one that was stopped is not it any more.
		if s.controller(func(active int) bool { return active != broker }) != before {
			moves++
		}
		s.flowsOn()
		s.no(s.kafka.Start(s.ctx, broker))
		s.no(s.kafka.WaitInSync(s.ctx, s.topic))
		s.flowsOn()
	}
	written()
	s.delivered()
	s.stop(p)
	if moves == 0 {
		s.t.Error("the controller has never moved")
	}
	s.uninterrupted()
}

// controller waits for an active controller that passes, and returns it.
func (s *stand) controller(passes func(active int) bool) (active int) {
	s.t.Helper()
	s.until("the cluster has a controller", func() bool {
		var err error
		active, err = s.kafka.ActiveController(s.ctx)
		return err == nil && passes(active)
	})
	return active
}

// flowsOn: a row to every partition is delivered, and soon.
func (s *stand) flowsOn() {
	s.t.Helper()
	began := time.Now()
	s.load(1, aggregates)
	s.delivered()
	took := time.Since(began)
	s.t.Logf("delivered within %s", took.Round(time.Millisecond))
	if took > moveLimit {
		s.t.Errorf("the cluster was ready, and rows waited %s more\n%s", took, s.lastLines())
	}
}

// uninterrupted is check for a stream of one session, in which the brokers
// know every batch that comes twice.
func (s *stand) uninterrupted() {
	s.t.Helper()
	if report := s.check(nil); report.Repeated != 0 {
		s.t.Errorf("%d records repeated although their sequence numbers were known", report.Repeated)
	}
	if n := s.sessions(); n != 1 {
		s.t.Errorf("%d sessions, want one", n)
	}
}
