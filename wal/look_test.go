package wal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/cdcpub/cdcpub/test/harness"
)

// asked begins a Look and returns where its answer comes.
func (r *running) asked(ctx context.Context) <-chan error {
	answer := make(chan error, 1)
	go func() { answer <- r.stream.Look(ctx) }()
	synctest.Wait()
	return answer
}

// The producer sends nothing until a look was answered, so the pipeline takes
// nothing, and Run reads nothing: the answer must not depend on that.
func TestALookIsAnsweredWhileNothingIsTaken(t *testing.T) {
	inFakeTime(t, func(r *running) {
		var rows [][]byte
		for range 1000 {
			rows = append(rows, transaction(0x2000, strings.Repeat("x", 1000))...)
		}
		r.send(rows...)
		reads := r.server.reads.Load()
		r.sleep(time.Second)
		if more := r.server.reads.Load() - reads; more > 0 {
			t.Fatalf("the stream still reads, %d times: nothing stands still here", more)
		}
		began := time.Now()
		if err := <-r.asked(r.t.Context()); err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		if silence := r.stream.Silence(); silence > 0 {
			t.Errorf("the look found our walsender, and the lease is %s old", silence)
		}
		if got := kinds(r.events(3)); !strings.HasPrefix(got, "BIC") {
			t.Errorf("events %s", got)
		}
	})
}

// A look that is under way may have been answered before the question.
func TestALookBeginsAfterTheQuestion(t *testing.T) {
	inFakeTime(t, func(r *running) {
		first := r.asked(r.t.Context())
		r.server.looksAre(func() lookResult { return lookAlive })
		second := r.asked(r.t.Context())
		asked := time.Now()
		var unreachable *UnreachableError
		if err := <-first; !errors.As(err, &unreachable) {
			t.Errorf("a look that is not answered gives %v", err)
		}
		if err := <-second; err != nil {
			t.Error(err)
		}
		if looks := r.server.lookTimes(); len(looks) != 2 || !looks[1].Equal(asked.Add(probeLimit)) {
			t.Errorf("asked at %s, looks at %s", asked, looks)
		}
	}, always(lookResult{hangs: true}))
}

func TestALookThatFindsTheSlotLostEndsTheStream(t *testing.T) {
	for name, found := range lostSlots {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, func(r *running) {
				if err := <-r.asked(r.t.Context()); !errors.Is(err, ErrSlotTaken) {
					t.Errorf("the look says %v", err)
				}
				if err := r.end(); !errors.Is(err, ErrSlotTaken) || time.Since(r.began) > 0 {
					t.Errorf("the stream ended with %v after %s", err, time.Since(r.began))
				}
			}, always(found))
		})
	}
}

func TestALookEndsWithItsContextAndWithTheStream(t *testing.T) {
	inFakeTime(t, func(r *running) {
		ctx, cancel := context.WithCancelCause(r.t.Context())
		over := errors.New("over")
		first, second, third := r.asked(ctx), r.asked(r.t.Context()), r.asked(r.t.Context())
		cancel(over)
		if err := <-first; !errors.Is(err, over) {
			t.Error(err)
		}
		r.cancel(over)
		for _, answer := range []<-chan error{second, third, r.asked(r.t.Context())} {
			if err := <-answer; err == nil {
				t.Error("a stream that has ended holds the slot")
			}
		}
		if time.Since(r.began) > 0 {
			t.Errorf("after %s", time.Since(r.began))
		}
	}, always(lookResult{hangs: true}))
}

// What the server refuses does not prove anything, and does not end the stream.
func TestALookThatIsRefusedIsAnErrorAndNothingElse(t *testing.T) {
	full := &pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "53300", Message: "sorry, too many clients already"}
	inFakeTime(t, func(r *running) {
		var unreachable *UnreachableError
		if err := <-r.asked(r.t.Context()); !errors.As(err, &unreachable) {
			t.Error(err)
		}
		if looks := r.server.lookTimes(); len(looks) != 2 {
			t.Errorf("%d connections: one, and one as a walsender, were to be tried", len(looks))
		}
		r.server.looksAre(func() lookResult { return lookAlive })
		if err := <-r.asked(r.t.Context()); err != nil {
			t.Error(err)
		}
	}, always(lookResult{refused: full}))
}

// A storm of connections must not keep a publisher from proving its slot.
func TestALookIsAnsweredByAServerThatHasNoConnectionLeft(t *testing.T) {
	for _, version := range []string{"14", "18"} {
		t.Run(version, func(t *testing.T) {
			server := harness.Postgres(t, version, "max_connections=5", "superuser_reserved_connections=0", "max_wal_senders=3", "autovacuum=off")
			sql := connect(t, server.URL("postgres"))
			exec(t, sql, "CREATE DATABASE shop")
			shop := connect(t, server.URL("shop"))
			exec(t, shop, `CREATE TABLE outbox (id int PRIMARY KEY, payload text)`, `CREATE PUBLICATION "Out""box" FOR TABLE outbox`,
				`SELECT pg_create_logical_replication_slot('outbox_slot', 'pgoutput')`)
			l := goLive(t, realConfig(server))
			for full := false; !full; {
				conn, err := pgconn.Connect(t.Context(), server.URL("shop"))
				if full = refusedWith(err, "53300"); err != nil && !full {
					t.Fatal(err)
				}
				if conn != nil {
					defer conn.Close(context.Background())
				}
			}
			if err := l.Look(t.Context()); err != nil {
				t.Error(err)
			}
			exec(t, shop, "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots")
			for ask(t, shop, "SELECT count(*) FROM pg_replication_slots WHERE active") != "0" {
			}
			if err := l.Look(t.Context()); err == nil {
				t.Error("a stream whose walsender was ended holds the slot")
			}
		})
	}
}

// Pids are given again, soon when a server in a container starts again.
var lostSlots = map[string]lookResult{
	"another pid":              {holder: "99"},
	"another process, our pid": {holder: fmt.Sprint(walsenderPID), began: "1700000099.000001"},
	"nobody":                   {},
	"no slot":                  {gone: true},
}
