package publisher

import (
	"context"
	"maps"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/wal"
)

// Status is what /status shows. Its JSON names are stable.
type Status struct {
	State State     `json:"state"`
	Since time.Time `json:"since"`
	// Role is active for the process that holds the slot, else standby.
	Role  string `json:"role"`
	Ready bool   `json:"ready"`
	// Stall is the named cause why nothing is being published, absent while
	// publishing or idle.
	Stall *Stall `json:"stall,omitempty"`

	Slot         string `json:"slot"`
	Publication  string `json:"publication"`
	ConfirmedLSN string `json:"confirmed_lsn,omitempty"`
	// ReceivedLSN is the highest position received on the replication
	// connection, of the last session while there is none.
	ReceivedLSN string `json:"received_lsn,omitempty"`
	// LastConfirmed is when ConfirmedLSN last advanced, LastAcknowledged when
	// the last record was acknowledged; zero when that has not happened since
	// the start of the process.
	LastConfirmed    time.Time `json:"last_confirmed,omitzero"`
	LastAcknowledged time.Time `json:"last_acknowledged,omitzero"`
	// What was read from the slot since the start of the process, also again
	// after a reconnect: see wal.Counters.
	Transactions int64 `json:"transactions"`
	RowsRead     int64 `json:"rows_read"`
	BytesRead    int64 `json:"bytes_read"`
	// Sessions counts replication connections that were read since the start of
	// the process, SessionEnds how those that are over ended; it has every cause.
	Sessions    int              `json:"sessions"`
	SessionEnds map[EndCause]int `json:"session_ends"`
	Acked       int              `json:"records_acknowledged"`
	InFlight    InFlight         `json:"in_flight"`
	Kafka       *Kafka           `json:"kafka,omitempty"`
}

// InFlight is the window: from the oldest unacknowledged record to the newest
// sent one.
type InFlight struct {
	Records int  `json:"records"`
	Bytes   int  `json:"bytes"`
	Full    bool `json:"full"`
}

// Kafka is the producer's side.
type Kafka struct {
	Connected bool `json:"connected"`
	// Partitions lists those with something unacknowledged.
	Partitions []Partition `json:"partitions"`
}

// Partition is one partition with something unacknowledged.
type Partition struct {
	Topic           string    `json:"topic"`
	Partition       int32     `json:"partition"`
	Queued          int       `json:"queued"`
	OldestSince     time.Time `json:"oldest_since"`
	OldestCommitLSN string    `json:"oldest_commit_lsn"`
	Stall           string    `json:"stall,omitempty"`
}

// Status returns a snapshot. Safe from any goroutine.
func (p *Publisher) Status() Status {
	p.mu.Lock()
	state := p.state
	ends := maps.Clone(state.ends)
	p.mu.Unlock()
	status := Status{
		State: state.name, Since: state.since, Role: "standby",
		Slot: p.config.WAL.Slot, Publication: p.config.WAL.Publication,
		LastAcknowledged: state.lastAcked, Sessions: state.sessions, SessionEnds: ends, Acked: state.acked,
	}
	if state.confirmed != 0 {
		status.ConfirmedLSN = state.confirmed.String()
	}
	if state.cause != nil {
		status.Stall = &Stall{Kind: kindOf(state.name), Cause: state.cause.Error(), Since: state.since, logged: true}
	}
	if state.keeping != nil {
		status.Role = "active"
	}
	read := state.read
	if s := state.session; s != nil {
		read = continued(read, s.stream.Counters())
		s.describe(&status, p.config.WAL.WALSenderTimeout)
		if blocked := state.blocked; status.Stall == nil && blocked != nil && !s.advanced() {
			status.Stall = &Stall{Kind: StallBlocked, Cause: "trying again after: " + blocked.Cause, Since: blocked.Since, logged: true}
		}
	}
	status.reader(read)
	status.Ready = status.ready()
	return status
}

// connectGrace is how long Kafka may take to answer at first before that is a
// stall.
const connectGrace = time.Second

// notReadyAfter is how long a stall may last before /readyz says so.
const notReadyAfter = 10 * time.Second

// ready follows progress on the wire: a stall that lasts makes the process
// unready, idleness and standing by do not.
func (s *Status) ready() bool {
	switch s.State {
	case Streaming, Draining:
		return s.Stall == nil || time.Since(s.Stall.Since) < notReadyAfter
	case Standby:
		return true
	}
	return false
}

// reader fills in what all sessions together have read.
func (s *Status) reader(read wal.Counters) {
	if read.Received != 0 {
		s.ReceivedLSN = read.Received.String()
	}
	s.Transactions, s.RowsRead, s.BytesRead = read.Transactions, read.Rows, read.Bytes
	s.LastConfirmed = read.Confirmed
}

func (s *session) describe(status *Status, timeout time.Duration) {
	pipe, producer := s.pipe.Status(), s.producer.Status()
	status.Role = "active"
	status.ConfirmedLSN = s.stream.Confirmed().String()
	status.Acked += pipe.Acked
	status.LastAcknowledged = later(status.LastAcknowledged, pipe.LastAcked)
	status.InFlight = InFlight{Records: pipe.Outstanding, Bytes: pipe.Bytes, Full: pipe.Full}
	status.Kafka = &Kafka{Connected: producer.Connected, Partitions: []Partition{}}
	for _, partition := range producer.Partitions {
		status.Kafka.Partitions = append(status.Kafka.Partitions, Partition{
			Topic: partition.Topic, Partition: partition.Partition, Queued: partition.Queued,
			OldestSince: partition.OldestSince, OldestCommitLSN: partition.Oldest.CommitLSN.String(), Stall: partition.Stall,
		})
	}
	status.Stall = s.stall(pipe, producer, timeout)
}

// How often watch looks, how long a stall must last to be worth a line, and how
// often watch sums up.
const (
	watchInterval   = time.Second
	worthALine      = 2 * time.Second
	summaryInterval = time.Minute
)

// watch logs the stalls of a session when they begin and end, and a summary
// line a minute.
func (p *Publisher) watch(ctx context.Context) {
	ticker := time.NewTicker(watchInterval)
	defer ticker.Stop()
	var stalled bool
	last, lastAcked := time.Now(), 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if s := p.fruitfulSession(); s != nil {
			p.announce(s)
		}
		status := p.Status()
		switch stall := status.Stall; {
		case stall != nil && !stalled && !stall.logged && time.Since(stall.Since) >= worthALine:
			stalled = true
			p.log.Warn("stalled", stall.fields()...)
		case stall == nil && stalled:
			stalled = false
			p.log.Info("publishing again", zap.String("event", "recovered"))
		}
		if elapsed := time.Since(last); elapsed >= summaryInterval {
			p.log.Info("summary", summary(status, status.Acked-lastAcked, elapsed)...)
			last, lastAcked = time.Now(), status.Acked
		}
	}
}

// fruitfulSession is the session that publishes, or nil.
func (p *Publisher) fruitfulSession() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.state.session; s != nil && s.fruitful() {
		return s
	}
	return nil
}

func summary(s Status, acked int, elapsed time.Duration) []zap.Field {
	fields := []zap.Field{
		zap.String("event", "summary"), zap.String("state", string(s.State)), zap.String("lsn", s.ConfirmedLSN),
		zap.Int("acknowledged", acked), zap.Float64("events_per_second", math.Round(10*float64(acked)/elapsed.Seconds())/10),
		zap.Int("in_flight", s.InFlight.Records),
	}
	if s.Stall != nil {
		fields = append(fields, zap.String("stall", s.Stall.Cause), zap.Duration("stalled_for", time.Since(s.Stall.Since)))
	}
	return fields
}
