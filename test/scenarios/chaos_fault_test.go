package scenarios

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
)

// chaosPlace is what a fault happens to; there is one fault of a place at a time.
type chaosPlace int

const (
	onPublisher chaosPlace = iota
	onPostgresLink
	onPostgres
	onBroker
	onKafkaLink
	onTopic
	onLeaders
	onAnswers
	onDatabase
	onSlot
)

// chaosKind is one kind of fault: what begins it and what ends it, after it has
// lasted. A nil end means that it ends by itself.
type chaosKind struct {
	place             chaosPlace
	weight            int
	shortest, longest time.Duration
	begin             func(*chaosWorld, chaosFault) error
	end               func(*chaosWorld, chaosFault) error
	// only says which schedules may have it; nil: all.
	only func(chaosSchedule) bool
	// repeats: what comes again has no bound that follows from the window.
	// PostgreSQL may come back with an older position than was confirmed; over a
	// link that is broken it does not hear what was confirmed of the rows that
	// lay in the buffers of the sockets.
	repeats bool
}

func (k chaosKind) fits(s chaosSchedule) bool { return k.only == nil || k.only(s) }

// Only real brokers are processes behind proxies; only the fake answers as it is
// told.
func onRealKafka(s chaosSchedule) bool { return !s.fake }
func onFakeKafka(s chaosSchedule) bool { return s.fake }
func onThree(s chaosSchedule) bool     { return !s.fake && s.brokers == 3 }

const tenth = 100 * time.Millisecond

var chaosKinds = map[string]chaosKind{
	"publisher killed": {place: onPublisher, weight: 4,
		begin: func(w *chaosWorld, f chaosFault) error { return w.process(f.target).Kill9() }},
	"publisher terminated": {place: onPublisher, weight: 3,
		begin: func(w *chaosWorld, f chaosFault) error { return w.process(f.target).Signal(syscall.SIGTERM) }},
	"publisher frozen": {place: onPublisher, weight: 4, shortest: 3 * tenth, longest: 9 * time.Second,
		begin: func(w *chaosWorld, f chaosFault) error { return w.process(f.target).Freeze() },
		end:   func(w *chaosWorld, f chaosFault) error { return w.process(f.target).Thaw() }},

	"link to PostgreSQL cut": {place: onPostgresLink, weight: 2, repeats: true, longest: 3 * time.Second,
		begin: func(w *chaosWorld, f chaosFault) error { w.link(f).Cut(); return nil },
		end:   func(w *chaosWorld, f chaosFault) error { return w.link(f).Restore() }},
	"link to PostgreSQL frozen": {place: onPostgresLink, weight: 2, repeats: true, shortest: time.Second, longest: 8 * time.Second,
		begin: func(w *chaosWorld, f chaosFault) error { w.link(f).Freeze(); return nil },
		end:   func(w *chaosWorld, f chaosFault) error { return w.link(f).Restore() }},
	"link to PostgreSQL swallows": {place: onPostgresLink, weight: 2, repeats: true, shortest: time.Second, longest: 5 * time.Second,
		begin: func(w *chaosWorld, f chaosFault) error { w.link(f).Swallow(); return nil },
		end:   func(w *chaosWorld, f chaosFault) error { return w.link(f).Restore() }},
	"link to PostgreSQL slow": {place: onPostgresLink, weight: 1, shortest: time.Second, longest: 4 * time.Second,
		begin: func(w *chaosWorld, f chaosFault) error { w.link(f).SetLatency(20 * time.Millisecond); return nil },
		end:   func(w *chaosWorld, f chaosFault) error { return w.link(f).Restore() }},
	"walsender terminated": {place: onPostgres, weight: 2, begin: (*chaosWorld).terminateWalsender},
	"PostgreSQL killed": {place: onPostgres, weight: 2, longest: time.Second, repeats: true,
		begin: func(w *chaosWorld, _ chaosFault) error { return w.pg.Kill() },
		end:   func(w *chaosWorld, _ chaosFault) error { return w.pg.Start(w.ctx) }},
	"PostgreSQL stopped immediately": {place: onPostgres, weight: 1, longest: time.Second, repeats: true,
		begin: func(w *chaosWorld, _ chaosFault) error { return w.pg.Stop(pgserver.Immediate, w.options.patience) },
		end:   func(w *chaosWorld, _ chaosFault) error { return w.pg.Start(w.ctx) }},
	"PostgreSQL stopped fast": {place: onPostgres, weight: 2, longest: time.Second, repeats: true,
		begin: func(w *chaosWorld, _ chaosFault) error { return w.pg.Stop(pgserver.Fast, w.options.patience) },
		end:   func(w *chaosWorld, _ chaosFault) error { return w.pg.Start(w.ctx) }},

	"broker killed": {place: onBroker, only: onRealKafka, weight: 2, longest: time.Second,
		begin: func(w *chaosWorld, f chaosFault) error { return w.kafka.Kill(f.target) },
		end:   func(w *chaosWorld, f chaosFault) error { return w.kafka.Start(w.ctx, f.target) }},
	"broker stopped": {place: onBroker, only: onRealKafka, weight: 1, longest: time.Second,
		begin: func(w *chaosWorld, f chaosFault) error { return w.kafka.Stop(f.target) },
		end:   func(w *chaosWorld, f chaosFault) error { return w.kafka.Start(w.ctx, f.target) }},
	"broker frozen": {place: onBroker, only: onRealKafka, weight: 2, shortest: 5 * tenth, longest: 6 * time.Second,
		begin: func(w *chaosWorld, f chaosFault) error { return w.kafka.Freeze(f.target) },
		end:   func(w *chaosWorld, f chaosFault) error { return w.kafka.Thaw(f.target) }},
	"link to Kafka cut": {place: onKafkaLink, only: onRealKafka, weight: 2, longest: 3 * time.Second,
		begin: func(w *chaosWorld, f chaosFault) error { w.kafka.Proxy(f.target).Cut(); return nil },
		end:   func(w *chaosWorld, f chaosFault) error { return w.kafka.Proxy(f.target).Restore() }},
	"link to Kafka frozen": {place: onKafkaLink, only: onRealKafka, weight: 3, shortest: 5 * tenth, longest: 8 * time.Second,
		begin: func(w *chaosWorld, f chaosFault) error { w.kafka.Proxy(f.target).Freeze(); return nil },
		end:   func(w *chaosWorld, f chaosFault) error { return w.kafka.Proxy(f.target).Restore() }},
	"link to Kafka swallows": {place: onKafkaLink, only: onRealKafka, weight: 2, shortest: 5 * tenth, longest: 5 * time.Second,
		begin: func(w *chaosWorld, f chaosFault) error { w.kafka.Proxy(f.target).Swallow(); return nil },
		end:   func(w *chaosWorld, f chaosFault) error { return w.kafka.Proxy(f.target).Restore() }},
	"link to Kafka slow": {place: onKafkaLink, only: onRealKafka, weight: 1, shortest: time.Second, longest: 4 * time.Second,
		begin: func(w *chaosWorld, f chaosFault) error {
			w.kafka.Proxy(f.target).SetLatency(50 * time.Millisecond)
			return nil
		},
		end: func(w *chaosWorld, f chaosFault) error { return w.kafka.Proxy(f.target).Restore() }},
	"answers of Kafka lost": {place: onKafkaLink, only: onRealKafka, weight: 3, shortest: 3 * tenth, longest: 3 * time.Second,
		begin: func(w *chaosWorld, f chaosFault) error { w.kafka.Proxy(f.target).DropResponses(); return nil },
		end:   func(w *chaosWorld, f chaosFault) error { return w.kafka.Proxy(f.target).Restore() }},
	"not enough replicas": {place: onTopic, only: onRealKafka, weight: 1, shortest: 5 * tenth, longest: 3 * time.Second,
		begin: func(w *chaosWorld, _ chaosFault) error { return w.configure("min.insync.replicas", "4") },
		end:   func(w *chaosWorld, _ chaosFault) error { return w.configure("min.insync.replicas", "") }},
	"record too large": {place: onTopic, only: onRealKafka, weight: 1, shortest: 5 * tenth, longest: 3 * time.Second,
		begin: func(w *chaosWorld, _ chaosFault) error { return w.configure("max.message.bytes", "700") },
		end:   (*chaosWorld).raiseLimit},

	"disk of a broker full": {place: onBroker, only: onRealKafka, weight: 1, longest: time.Second, begin: (*chaosWorld).fillDisk,
		end: func(w *chaosWorld, f chaosFault) error { return w.kafka.Start(w.ctx, f.target) }},
	"leader moves": {place: onLeaders, only: onThree, weight: 4, longest: 4 * time.Second, begin: (*chaosWorld).moveLeaders},

	"produce errors of every code": {place: onAnswers, only: onFakeKafka, weight: 4, shortest: time.Second, longest: 5 * time.Second,
		begin: (*chaosWorld).refuseProduce, end: (*chaosWorld).endAnswers},
	"appended and answered with errors": {place: onAnswers, only: onFakeKafka, weight: 4, shortest: time.Second, longest: 5 * time.Second,
		begin: (*chaosWorld).refuseAppended, end: (*chaosWorld).endAnswers},
	"acks slow": {place: onAnswers, only: onFakeKafka, weight: 4, shortest: 2 * time.Second, longest: 8 * time.Second,
		begin: (*chaosWorld).slowAcks, end: (*chaosWorld).endAnswers},
	"records refused": {place: onAnswers, only: onFakeKafka, weight: 2, shortest: 5 * tenth, longest: 2 * time.Second,
		begin: (*chaosWorld).refuseRecords, end: (*chaosWorld).endAnswersAndRestart},
	"producer fenced": {place: onAnswers, only: onFakeKafka, weight: 2, shortest: 5 * tenth, longest: 2 * time.Second,
		begin: (*chaosWorld).fenceProducer, end: (*chaosWorld).endAnswersAndRestart},
	"coordinator refuses": {place: onAnswers, only: onFakeKafka, weight: 2, shortest: time.Second, longest: 4 * time.Second,
		begin: (*chaosWorld).refuseClaims, end: (*chaosWorld).endAnswers},
	"leaders shuffled": {place: onLeaders, only: onFakeKafka, weight: 2, longest: 4 * time.Second, begin: (*chaosWorld).shuffleLeaders},

	"standby promoted": {place: onPostgres, only: func(s chaosSchedule) bool { return s.standby }, repeats: true, begin: (*chaosWorld).promote},
	"slot dropped": {place: onSlot, only: func(s chaosSchedule) bool { return !s.standby }, weight: 1, longest: time.Second, repeats: true,
		begin: (*chaosWorld).dropSlotUnderLoad, end: (*chaosWorld).createSlotAgain},
	"slot invalidated": {place: onSlot, only: func(s chaosSchedule) bool { return s.version == "18" && !s.standby }, weight: 2, longest: time.Second, repeats: true,
		begin: (*chaosWorld).invalidateSlot, end: (*chaosWorld).createSlotAgain},

	"long transaction":    {place: onDatabase, weight: 1, shortest: time.Second, longest: 6 * time.Second, begin: (*chaosWorld).longTransaction},
	"foreign transaction": {place: onDatabase, weight: 1, begin: (*chaosWorld).foreignTransaction},
}

// chaosKindsInOrder: a map has none, and a seed needs one.
func chaosKindsInOrder() iter.Seq2[string, chaosKind] {
	return func(yield func(string, chaosKind) bool) {
		for _, name := range slices.Sorted(maps.Keys(chaosKinds)) {
			if !yield(name, chaosKinds[name]) {
				return
			}
		}
	}
}

// terminateWalsender may find none, or a server that is down: nothing to end.
func (w *chaosWorld) terminateWalsender(chaosFault) error {
	_ = w.query("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = $1 AND active", w.slot)
	return nil
}

// query runs one statement on a connection of its own.
func (w *chaosWorld) query(sql string, args ...any) error {
	conn, err := pgx.Connect(w.ctx, w.url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(w.ctx))
	_, err = conn.Exec(w.ctx, sql, args...)
	return err
}

// configure sets or, with "", resets a setting of the topic. A cluster that
// does not answer now is asked again.
func (w *chaosWorld) configure(key, value string) error {
	to := &value
	if value == "" {
		to = nil
	}
	return w.again(func() error { return w.kafka.AlterTopicConfig(w.ctx, w.topic, key, to) })
}

// again repeats what another fault may keep from succeeding.
func (w *chaosWorld) again(do func() error) error {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for tries := 1; ; tries++ {
		err := do()
		if err == nil {
			return nil
		}
		if tries == 50 {
			w.note("still tries: %v", err)
		}
		select {
		case <-ticker.C:
		case <-w.ctx.Done():
			return err
		}
	}
}

// raiseLimit does what the message says: raise the limit, and restart the
// publishers rather than wait a minute for the next try.
func (w *chaosWorld) raiseLimit(chaosFault) error {
	if err := w.configure("max.message.bytes", ""); err != nil {
		return err
	}
	return w.restart()
}

// longTransaction holds a row back that was inserted early.
func (w *chaosWorld) longTransaction(f chaosFault) error {
	conn, err := pgx.Connect(w.ctx, w.url)
	if err != nil {
		return nil // the server is down: no transaction
	}
	defer conn.Close(context.WithoutCancel(w.ctx))
	if _, err := conn.Exec(w.ctx, "BEGIN"); err != nil {
		return nil
	}
	_, _ = conn.Exec(w.ctx, insertChange, []string{fmt.Sprintf("long-%d", f.at.Milliseconds())}, 10)
	select {
	case <-time.After(f.lasts):
	case <-w.ctx.Done():
	}
	_, _ = conn.Exec(w.ctx, "COMMIT") // it may have died with the server
	return nil
}

// foreignTransaction is large, and none of the publisher's business.
func (w *chaosWorld) foreignTransaction(chaosFault) error {
	_ = w.query("INSERT INTO noise SELECT repeat(md5(i::text), 30) FROM generate_series(1, 100000) i")
	return nil
}
