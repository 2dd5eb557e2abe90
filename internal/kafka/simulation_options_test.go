package kafka

import "time"

// collect lists what can happen now. The weights make schedules in which much
// goes wrong and something gets done.
func (w *world) collect() {
	w.options, w.weight = w.options[:0], 0
	for _, p := range w.processes {
		w.ofProcess(p)
	}
	for i, c := range w.late {
		w.add(option{event: evLate, weight: 2, conn: c, index: i})
		w.disturb(option{event: evLateGone, weight: 1, conn: c, index: i})
	}
	if len(w.lateClaims) > 0 {
		w.add(option{event: evLateClaim, weight: 4})
	}
	if holder := w.postgres.holder; holder != nil && !holder.served() && time.Since(holder.heard) >= simulatedTimeout {
		w.add(option{event: evExpired, weight: 20})
	}
	w.add(option{event: evMoment, weight: 3})
	w.add(option{event: evSecond, weight: 2})
	w.add(option{event: evMinute, weight: 1})
	if !w.healing {
		w.disturbances()
	}
}

func (w *world) add(o option) {
	w.options = append(w.options, o)
	w.weight += o.weight
}

// disturb is add for what a healing world is spared. Each schedule leaves out
// some kinds of disturbances, so that others have their time.
func (w *world) disturb(o option) {
	if !w.healing && !w.spared[o.event] {
		w.add(o)
	}
}

func (w *world) ofProcess(p *process) {
	s := p.session
	switch {
	case p.client == nil:
		w.add(option{event: evStart, weight: 10, process: p})
		return
	case p.frozen:
		w.add(option{event: evThaw, weight: 4, process: p})
	case s == nil && w.postgres.holder == nil:
		opening := evOpen
		if w.sessions > 0 && w.starts[w.sessions-1].process != p {
			opening = evTakeover
		}
		w.add(option{event: opening, weight: 30, process: p})
	}
	if s == nil {
		return
	}
	danger := 1
	for _, c := range s.conns {
		w.ofConn(p, c)
		danger += 2 * len(c.wire)
	}
	if !p.frozen {
		w.ofSession(p, s)
		w.disturb(option{event: evFreeze, weight: danger, process: p})
	}
	w.disturb(option{event: evKill, weight: danger, process: p})
	w.disturb(option{event: evKilledHost, weight: danger, process: p})
}

// ofSession lists what a session can do by itself, and what can happen to its
// replication connection.
func (w *world) ofSession(p *process, s *simulated) {
	if s.due() {
		w.add(option{event: evTurn, weight: 60, process: p})
	}
	if len(s.producer.outcomes) > 0 {
		w.add(option{event: evResults, weight: 40, process: p})
	}
	for i := range s.control {
		if len(s.control[i]) > 0 {
			w.add(option{event: evControl, weight: w.controlWeight, process: p, index: i})
			w.disturb(option{event: evControlFails, weight: 2, process: p, index: i})
		}
	}
	ended := s.ended()
	switch {
	case s.closing:
		weight := 2
		if s.producer.inFlight == 0 || w.healing {
			weight = 30
		}
		w.add(option{event: evClosed, weight: weight, process: p})
		return
	case ended:
		w.add(option{event: evClose, weight: 20, process: p})
	case s.connected && s.reading && s.stopping && s.between(s.cursor):
		w.add(option{event: evStreamEnds, weight: 30, process: p})
	case s.connected && s.reading && !s.full && s.cursor < len(w.postgres.events):
		w.add(option{event: evBatch, weight: 40, process: p})
	}
	if s.connected && w.postgres.holder == s {
		if s.announced > w.postgres.confirmed {
			w.add(option{event: evStatus, weight: 10, process: p})
		}
		w.disturb(option{event: evSilence, weight: 1, process: p})
		w.disturb(option{event: evTerminated, weight: 1, process: p})
	}
	switch {
	case ended:
	case !s.connected:
		w.add(option{event: evNotice, weight: 10, process: p})
	default:
		w.disturb(option{event: evConnectionLost, weight: 1, process: p})
		if s.stopping {
			w.disturb(option{event: evStopDeadline, weight: 1, process: p})
		} else {
			w.disturb(option{event: evStop, weight: 1, process: p})
		}
	}
}

func (w *world) ofConn(p *process, c *conn) {
	if c.next() != nil {
		w.add(option{event: evArrive, weight: 40, conn: c})
	}
	if len(c.wire) > 0 {
		switch first := c.wire[0]; {
		case first.waiting:
			w.add(option{event: evReplicas, weight: 20, conn: c})
		case first.answered && !p.frozen:
			w.add(option{event: evAnswer, weight: 40, conn: c})
		}
	}
	if p.frozen {
		return
	}
	if len(c.queued) > 0 {
		w.add(option{event: evDepart, weight: 50, conn: c})
		if len(c.wire) == 0 {
			w.disturb(option{event: evDialFails, weight: 1, conn: c})
		}
	}
	if len(c.wire) > 0 {
		w.disturb(option{event: evCut, weight: 3, conn: c})
		w.disturb(option{event: evTimeout, weight: 3, conn: c})
	}
}

// disturbances are what the servers and their operators do.
func (w *world) disturbances() {
	if w.rng.IntN(4) == 0 {
		w.disturb(option{event: evServerCrash, weight: 1})
		w.disturb(option{event: evHours, weight: 1})
		w.disturb(option{event: evCoordinator, weight: 2})
	}
	w.add(option{event: evCheckpoint, weight: 1})
	w.disturb(option{event: evLeader, weight: 1})
	w.disturb(option{event: evTruncated, weight: 1})
	w.disturb(option{event: evBrokerRestart, weight: 1})
	w.disturb(option{event: evTighten, weight: 1})
	w.disturb(option{event: evSmaller, weight: 1})
	if len(w.cluster.bad) > 0 {
		w.add(option{event: evCure, weight: 1})
	}
	if w.forgets {
		w.disturb(option{event: evForget, weight: 2})
	}
}
