package kafka

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"github.com/jackc/pglogrepl"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// happen lets an event happen.
func (w *world) happen(o *option) {
	switch o.event {
	case evMoment:
		w.pass(time.Duration(1+w.rng.IntN(200)) * time.Millisecond)
	case evSecond:
		w.pass(time.Duration(1+w.rng.IntN(15)) * time.Second)
	case evMinute:
		w.pass(time.Duration(61+w.rng.IntN(120)) * time.Second)
	case evHours:
		w.pass(fenceRenewal + time.Second)
	case evLate, evLateGone, evLateClaim:
		w.lateHappens(o)
	case evExpired:
		w.postgres.holder.expired = true
		w.postgres.holder.lose()
	case evCheckpoint:
		w.postgres.stored = w.postgres.confirmed
	case evServerCrash:
		w.crash()
	case evDepart, evDialFails, evArrive, evReplicas, evAnswer, evCut, evTimeout:
		w.connHappens(o.event, o.conn)
	case evStart, evOpen, evTakeover, evFreeze, evThaw, evKill, evKilledHost:
		w.processHappens(o.event, o.process)
	case evLeader, evTruncated, evBrokerRestart, evForget, evTighten, evCure, evSmaller, evCoordinator:
		w.clusterHappens(o.event)
	default:
		w.sessionHappens(o, o.process.session)
	}
}

func (w *world) processHappens(e event, p *process) {
	switch e {
	case evStart:
		client, err := NewClient(w.config)
		if err != nil {
			panic(err)
		}
		p.client = client
		w.clients++
	case evOpen, evTakeover:
		s := w.open(p)
		w.starts = append(w.starts, s)
		w.note("session %d begins at %s", s.number, s.start)
	case evFreeze:
		p.frozen = true
	case evThaw:
		p.frozen = false
	case evKill, evKilledHost:
		s := p.session
		s.vanish()
		if e == evKill && w.postgres.holder == s {
			w.postgres.holder = nil
		}
		p.client, p.session, p.frozen = nil, nil, false
	}
}

// served: the server hears from the session.
func (s *simulated) served() bool {
	return s.connected && s.process.session == s && !s.process.frozen
}

// lose takes the slot away. The session does not know it yet.
func (s *simulated) lose() {
	s.connected = false
	if s.w.postgres.holder == s {
		s.w.postgres.holder = nil
	}
}

// vanish ends everything of the session but what is on the network.
func (s *simulated) vanish() {
	s.cancel(errConnectionLost)
	synctest.Wait()
	s.connected = false
	s.producer.abort()
	for _, c := range s.conns {
		c.abandon()
	}
	s.conns = nil
}

// crash is a crash of PostgreSQL: the slot comes back with what was stored.
func (w *world) crash() {
	if s := w.postgres.holder; s != nil {
		s.lose()
	}
	w.postgres.confirmed = w.postgres.stored
}

func (w *world) sessionHappens(o *option, s *simulated) {
	switch e := o.event; e {
	case evTurn:
		w.turn(s)
	case evResults:
		s.results()
	case evControl:
		w.controlHappens(s, s.ask(o.index))
	case evControlFails:
		job := s.ask(o.index)
		if job.lookup != nil {
			w.count(evLookupError)
		}
		s.producer.replies.put(controlled{job: job, err: &noBrokerError{[]error{unreachable(addressOf(0), io.EOF)}}})
	case evBatch:
		s.heard = time.Now()
		taken := s.offer(1 + w.rng.IntN(8))
		w.note("taken %t, now before event %d", taken, s.cursor)
	case evStreamEnds:
		s.finish()
	case evStatus:
		w.confirm(s.announced)
	case evStop:
		s.stopping = true
	case evStopDeadline, evConnectionLost, evNotice:
		if e == evConnectionLost {
			s.lose()
		}
		s.cancel(errConnectionLost)
		synctest.Wait()
	case evSilence:
		s.connected = false
	case evTerminated:
		s.lose()
	case evClose:
		s.closing = true
		s.producer.stopped.Store(true)
		s.producer.closeOnce.Do(func() { close(s.producer.closing) })
		s.results()
	case evClosed:
		w.over(s)
	}
}

// turn is a round of the producer, and what must be true of it.
func (w *world) turn(s *simulated) {
	dead, waived := s.producer.dead, s.producer.fence.waived
	s.turn()
	switch fence := &s.producer.fence; {
	case w.fencing && fence.id == "":
		w.problem("session %d has no fence", s.number)
	case fence.waived && !waived:
		w.count(evUnfenced)
		if !s.refused && (s.claiming.IsZero() || time.Since(s.claiming) < fenceGrace) {
			w.problem("session %d goes on without a fence, for no reason", s.number)
		}
	}
	w.unfenced = w.unfenced || s.producer.fence.waived
	if s.producer.dead && !dead {
		w.count(evProducerFailed)
	}
}

// confirm is a status update that arrives.
func (w *world) confirm(lsn pglogrepl.LSN) {
	w.postgres.confirmed = lsn
	w.note("confirmed %s", lsn)
	sample := verify.Sample{Confirmed: lsn, End: make(map[verify.TopicPartition]int64, len(w.cluster.partitions))}
	for i := range w.cluster.partitions {
		p := &w.cluster.partitions[i]
		end := int64(0)
		if p.replicated > 0 {
			last := &p.batches[p.replicated-1]
			end = last.offset + int64(len(last.rows))
		}
		sample.End[verify.TopicPartition{Topic: simulatedTopic, Partition: int32(i)}] = end
	}
	w.samples = append(w.samples, sample)
}

// over is the end of a session whose producer is closed. Answers that have not
// come by now are not waited for.
func (w *world) over(s *simulated) {
	s.results()
	if s.err == nil {
		w.count(evCleanEnd)
		if s.announced != s.offered {
			w.problem("session %d ended with all delivered and confirmed %s of %s", s.number, s.announced, s.offered)
		}
	}
	if s.connected && w.postgres.holder == s && s.announced > w.postgres.confirmed {
		w.confirm(s.announced)
	}
	s.lose()
	s.vanish()
	s.process.session = nil
	close(s.producer.quiet)
	s.producer.Close(context.Background())
}

func (w *world) connHappens(e event, c *conn) {
	switch e {
	case evDepart:
		if c.depart() == nil {
			w.count(evGateClosed)
		}
	case evDialFails:
		c.cut(unreachable(c.link.address, io.EOF))
	case evArrive:
		c.arrive(c.next(), w.rng)
	case evReplicas:
		c.replicate(c.wire[0])
	case evAnswer:
		w.note("answers %+v", c.wire[0].answers)
		c.answer(w.rng)
	case evCut:
		c.cut(io.EOF)
	case evTimeout:
		c.cut(os.ErrDeadlineExceeded)
	}
}

func (w *world) lateHappens(o *option) {
	switch o.event {
	case evLate:
		r := o.conn.wire[0]
		o.conn.wire = o.conn.wire[1:]
		o.conn.arrive(r, w.rng)
		for _, v := range r.answers {
			switch {
			case v.appended:
				w.count(evLateAppended)
			case v.code == sarama.ErrInvalidProducerEpoch, v.code == sarama.ErrOutOfOrderSequenceNumber:
				w.count(evLateRefused)
			}
		}
		w.note("answers %+v", r.answers)
	case evLateGone:
		o.conn.wire = nil
	case evLateClaim:
		w.cluster.take(w.lateClaims[0])
		w.lateClaims = w.lateClaims[1:]
		return
	}
	if len(o.conn.wire) == 0 {
		w.late = slices.Delete(w.late, o.index, o.index+1)
	}
}

// ask takes the oldest request of a control connection.
func (s *simulated) ask(connection int) controlJob {
	job := s.control[connection][0]
	s.control[connection] = s.control[connection][1:]
	return job
}

// controlHappens answers a request of a control connection.
func (w *world) controlHappens(s *simulated, job controlJob) {
	r := controlled{job: job}
	odd := !w.healing && w.rng.IntN(12) == 0
	switch {
	case job.lookup != nil:
		w.count(evLookup)
		r.metadata = w.metadata(odd)
	case job.identify != nil:
		w.count(evNewID)
		w.cluster.idReplaced = w.cluster.idReplaced || job.identify.renewal == renewID
		if odd {
			r.err = sarama.ErrConsumerCoordinatorNotAvailable
			break
		}
		r.identity = w.cluster.newProducerID()
	case job.look != nil:
		r.err = w.look(s, job, odd)
	case job.claim != nil:
		r.identity, r.err = w.claim(s, job.claim, odd)
		w.note("claim of session %d with %+v: %+v, %v", s.number, job.claim.previous, r.identity, r.err)
	}
	s.producer.replies.put(r)
}

func (w *world) metadata(odd bool) *sarama.MetadataResponse {
	m := new(sarama.MetadataResponse)
	for broker := range int32(simulatedBrokers) {
		m.AddBroker(addressOf(broker), broker)
	}
	if odd {
		w.count(evTopicError)
		codes := []sarama.KError{sarama.ErrLeaderNotAvailable, sarama.ErrUnknownTopicOrPartition, sarama.ErrTopicAuthorizationFailed}
		m.AddTopic(simulatedTopic, codes[w.rng.IntN(len(codes))])
		return m
	}
	for i := range w.cluster.partitions {
		m.AddTopicPartition(simulatedTopic, int32(i), w.cluster.partitions[i].leader, nil, nil, nil, sarama.ErrNoError)
	}
	return m
}

// claim is control.takeIdentity against the model's coordinator.
func (w *world) claim(s *simulated, c *claim, odd bool) (identity, error) {
	if err := c.gate(); err != nil {
		s.claiming = time.Now()
		return identity{}, fmt.Errorf("%w: %w", errNoCoordinator, err)
	}
	switch {
	case w.cluster.refusesTransactional:
		w.count(evClaimForbidden)
		s.refused = true
		return identity{}, sarama.ErrTransactionalIDAuthorizationFailed
	case w.cluster.coordinatorAway:
		return identity{}, w.postpone()
	case odd:
		if w.rng.IntN(2) == 0 {
			w.count(evClaimUnanswered)
			w.cluster.take(c.previous)
		} else {
			w.lateClaims = append(w.lateClaims, c.previous)
		}
		return identity{}, w.postpone()
	}
	id, code := w.cluster.take(c.previous)
	if code != sarama.ErrNoError {
		w.count(evClaimRefused)
		return identity{}, code
	}
	w.count(evClaim)
	s.claiming = time.Time{}
	return id, nil
}

// look is what a session finds that asks PostgreSQL for its slot. A network that
// takes the replication connection most often takes this one too.
func (w *world) look(s *simulated, job controlJob, odd bool) error {
	if odd || !s.connected && w.rng.IntN(3) > 0 {
		w.count(evLookFails)
		return unreachable("postgres:5432", io.EOF)
	}
	err := job.look(context.Background())
	if err != nil {
		w.count(evLookTaken)
		return err
	}
	w.count(evLook)
	return nil
}

func (w *world) postpone() error {
	w.count(evClaimPostponed)
	return fmt.Errorf("%w: %w", errNoCoordinator, io.EOF)
}
