package kafka

import (
	"io"
	"slices"
)

// clusterHappens is what befalls the brokers and what operators do to a topic.
func (w *world) clusterHappens(e event) {
	c := &w.cluster
	p := &c.partitions[w.rng.IntN(len(c.partitions))]
	switch e {
	case evLeader, evTruncated:
		p.move((p.leader+1)%simulatedBrokers, e == evTruncated)
	case evBrokerRestart:
		w.restart(w.rng.Int32N(simulatedBrokers))
	case evForget:
		p.forgotten, c.forgotten = len(p.batches), true
	case evTighten:
		w.tighten()
	case evCure:
		clear(c.bad)
	case evSmaller:
		c.largestBatch = 1 + w.rng.IntN(6)
	case evCoordinator:
		c.coordinatorAway = !c.coordinatorAway
		c.refusesTransactional = !c.coordinatorAway && w.rng.IntN(20) == 0
	}
}

// tighten makes the topic refuse a row from now on, most often one that is
// under way.
func (w *world) tighten() {
	var rows []int32
	for _, p := range w.processes {
		if s := p.session; s != nil && w.rng.IntN(4) > 0 {
			for _, c := range s.conns {
				for _, r := range c.wire {
					for i := range r.parts {
						rows = append(rows, r.parts[i].rows...)
					}
				}
			}
		}
	}
	switch n := len(w.postgres.rows); {
	case len(rows) > 0:
		w.cluster.bad[rows[w.rng.IntN(len(rows))]] = true
	case n > 0:
		w.cluster.bad[w.rng.Int32N(int32(n))] = true
	}
}

// restart takes with it what the broker had in its hands.
func (w *world) restart(broker int32) {
	for _, p := range w.processes {
		if p.session == nil {
			continue
		}
		for _, c := range p.session.conns {
			if c.broker == broker {
				c.cut(io.EOF)
			}
		}
	}
	w.late = slices.DeleteFunc(w.late, func(c *conn) bool { return c.broker == broker })
}
