package publisher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/wal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func stopFor(reason wal.Reason) error {
	return fmt.Errorf("wrapped: %w", &wal.StopError{Reason: reason, Slot: "s", Message: "what", Cure: "next"})
}

// The meaning of every error that wal, kafka and pipeline end a session with.
var meanings = []struct {
	err  error
	want verdict
}{
	{stopFor(wal.SlotLost), decision},
	{stopFor(wal.SlotAhead), decision},
	{stopFor(wal.ServerChanged), decision},
	{stopFor(wal.PublicationChanged), decision},
	{stopFor(wal.SlotMissing), refused},
	{stopFor(wal.SlotUnusable), refused},
	{stopFor(wal.PublicationMissing), refused},
	{stopFor(wal.PublicationTooNew), decision},
	{stopFor(wal.PublicationUnusable), refused},
	{stopFor(wal.TableUnusable), refused},
	{stopFor(wal.AccessDenied), refused},
	{stopFor(wal.RowUnreadable), decision},
	{&wal.SlotInUseError{Slot: "s", Cause: io.EOF}, wait},
	{&wal.MalformedError{Type: 'I', Cause: io.ErrUnexpectedEOF}, decision},
	{unknownRelation(1, 100), retry},
	{&stillUnknownError{unknownRelation(1, 100)}, decision},
	{wal.ErrServerStopping, retry},
	{errors.Join(wal.ErrServerStopping, io.EOF), retry},
	{fmt.Errorf("%w (20s)", wal.ErrSilent), retry},
	{fmt.Errorf("%w: slot s is gone", wal.ErrSlotTaken), retry},
	{wal.ErrServerEnded, retry},
	{io.ErrUnexpectedEOF, retry},
	{context.DeadlineExceeded, retry},
	{errShutdownTimeout, retry},
	{&pipeline.UnpublishableError{Table: outbox, Cause: io.EOF}, decision},
	{rejectedAt(7), decision},
	{&kafka.StopError{Topic: "t", What: "fenced"}, decision},
	{nil, retry},
}

var outbox = &wal.Relation{ID: 1, Schema: "public", Name: "outbox"}

func unknownRelation(oid uint32, commit pglogrepl.LSN) *wal.UnknownRelationError {
	return &wal.UnknownRelationError{Relation: &wal.Relation{ID: oid, Schema: "public", Name: "stray"}, CommitLSN: commit}
}

func rejectedAt(seq uint64) *pipeline.RejectedError {
	return &pipeline.RejectedError{Since: time.Now(), Rejection: pipeline.Rejection{
		Message: pipeline.Message{Seq: seq, Table: outbox}, Cause: io.EOF}}
}

func TestMeaningOfErrors(t *testing.T) {
	for _, m := range meanings {
		if got := classify(m.err); got != m.want {
			t.Errorf("%v: %d, want %d", m.err, got, m.want)
		}
	}
}

// observed returns a Publisher that has streamed, and its log.
func observed(edit func(*Config)) (*Publisher, *observer.ObservedLogs) {
	core, logs := observer.New(zap.DebugLevel)
	config := Config{WAL: wal.Config{Slot: "s", WALSenderTimeout: 15 * time.Second}, Log: zap.New(core), ForgetTopics: func() {}}
	if edit != nil {
		edit(&config)
	}
	p := New(config)
	p.identity = &wal.Identity{SystemID: "1", Timeline: 1}
	return p, logs
}

// steady is a backoff with a pause that nothing else has.
type steady struct{ backoff.ZeroBackOff }

const steadyPause = 7 * time.Second

func (steady) NextBackOff() time.Duration { return steadyPause }

func TestWhatFollowsTheEndOfASession(t *testing.T) {
	for _, m := range meanings {
		if m.err == nil || errors.As(m.err, new(*wal.UnknownRelationError)) {
			continue
		}
		p, _ := observed(nil)
		p.past.lookAgain(m.err) // that has been done
		pause, err := p.next(m.err, &steady{})
		want := map[verdict]struct {
			state State
			pause time.Duration
		}{retry: {Connecting, steadyPause}, wait: {Standby, standbyInterval}, refused: {Blocked, decisionInterval}, decision: {Blocked, decisionInterval}}[m.want]
		if err != nil || pause != want.pause || p.state.name != want.state {
			t.Errorf("%v: %s, pause %s, %v", m.err, p.state.name, pause, err)
		}
	}
}

// An operator who ends a walsender wants a standby to have the slot. Who takes it
// is seen, or a slot that has moved would stop this process.
func TestAfterATakeoverTheSlotIsLeftToOthersForAWhileAndWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := observed(nil)
		ended := error(&pgconn.PgError{Code: "57P01"})
		began := time.Now()
		for err := ended; err != nil; err = p.walConfig().BeforeStart() {
			pause, failed := p.next(err, &steady{})
			if failed != nil || pause != handoverLook || p.state.name != Connecting || !errors.Is(p.state.cause, ended) {
				t.Fatalf("%s for %v, pause %s, %v", p.state.name, p.state.cause, pause, failed)
			}
			time.Sleep(pause)
		}
		if left := time.Since(began); left != handover || left <= standbyInterval {
			t.Errorf("left to others for %s, a standby looks every %s", left, standbyInterval)
		}

		p.past.confirmed = 0x100
		if err := p.moved(0x200); err == nil {
			t.Error("a slot that has moved is accepted though nobody was seen on it")
		}
		mustGoOn(t, p, ended)
		p.own.connected(ownPID+1, "cdcpub")
		mustGoOn(t, p, another)
		if err := p.moved(0x200); err != nil {
			t.Errorf("a standby was seen: %v", err)
		}
	})
}

func TestAStopEndsRunBeforeTheFirstSessionAndWithOnStopExit(t *testing.T) {
	for name, edit := range map[string]func(*Publisher){
		"before the first session": func(p *Publisher) { p.identity = nil },
		"on_stop: exit":            func(p *Publisher) { p.config.ExitOnStop = true },
	} {
		for _, m := range meanings {
			if errors.As(m.err, new(*stillUnknownError)) {
				continue // made by next itself
			}
			p, logs := observed(nil)
			edit(p)
			if p.identity == nil && p.watched(m.err) {
				continue // a standby has seen another server: TestAnotherServerBlocksAStandbyToo
			}
			p.past.lookAgain(m.err)
			_, err := p.next(m.err, &steady{})
			var stopped *StoppedError
			ended := errors.As(err, &stopped)
			if ended != (m.want == refused || m.want == decision) {
				t.Errorf("%s: %v: ended: %v", name, m.err, ended)
			}
			if ended && (stopped.Decision != (m.want == decision) || !errors.Is(err, m.err)) {
				t.Errorf("%s: %v: %+v", name, m.err, stopped)
			}
			if ended && logs.Len() > 0 {
				t.Errorf("%s: %v: logged and returned", name, m.err)
			}
		}
	}
}

func TestUnknownRelationIsLookedUpOnceMore(t *testing.T) {
	p, _ := observed(nil)
	for _, step := range []struct {
		err   *wal.UnknownRelationError
		state State
		pause time.Duration
	}{
		{unknownRelation(1, 100), Connecting, minRetry},
		{unknownRelation(1, 100), Blocked, decisionInterval},
		{unknownRelation(1, 100), Blocked, decisionInterval},
		{unknownRelation(2, 100), Connecting, minRetry}, // another table
		{unknownRelation(2, 300), Connecting, minRetry}, // another transaction
		{unknownRelation(2, 300), Blocked, decisionInterval},
	} {
		pause, err := p.next(step.err, &steady{})
		if err != nil || pause != step.pause || p.state.name != step.state {
			t.Errorf("%v: %s, pause %s, %v", step.err, p.state.name, pause, err)
		}
	}
	text := p.state.cause.Error()
	for _, part := range []string{"public.stray", "oid 2", "read again", "attach it again", "add it to the publication", "README"} {
		if !strings.Contains(text, part) {
			t.Errorf("does not say %q: %s", part, text)
		}
	}
}

func TestAnUnpublishableRowIsRememberedForTheNextSession(t *testing.T) {
	p, _ := observed(nil)
	row := &pipeline.UnpublishableError{Table: outbox, Cause: io.EOF}
	_, _ = p.next(fmt.Errorf("wrapped: %w", row), &steady{})
	_, _ = p.next(io.EOF, &steady{})
	if p.unpublishable != row {
		t.Errorf("remembers %v", p.unpublishable)
	}
}

func TestWorseErrorExplainsTheEnd(t *testing.T) {
	human := &pipeline.UnpublishableError{Table: outbox, Cause: io.EOF}
	lost, transient := stopFor(wal.SlotLost), io.ErrUnexpectedEOF
	for _, c := range []struct{ pipe, stream, want error }{
		{nil, nil, nil}, {nil, transient, transient}, {transient, nil, transient}, {transient, wal.ErrServerEnded, transient},
		{human, transient, human}, {human, nil, human}, {transient, lost, lost}, {nil, lost, lost},
	} {
		if got := worse(c.pipe, c.stream); got != c.want {
			t.Errorf("of %v and %v: %v", c.pipe, c.stream, got)
		}
	}
}

// events lists the log's event fields.
func events(logs *observer.ObservedLogs) (names []string) {
	for _, entry := range logs.TakeAll() {
		names = append(names, fmt.Sprint(entry.ContextMap()["event"]))
	}
	return names
}

func TestOneLogLinePerChangeOfState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, logs := observed(nil)
		p.enter(Streaming, nil)
		logs.TakeAll()
		for range 60 { // nine minutes without PostgreSQL
			_, _ = p.next(io.EOF, &steady{})
			time.Sleep(9 * time.Second)
		}
		if got := events(logs); len(got) != 1 || got[0] != "connecting" {
			t.Errorf("an outage of nine minutes is %q", got)
		}
		for range 30 {
			_, _ = p.next(&wal.SlotInUseError{Slot: "s"}, &steady{})
			time.Sleep(standbyInterval)
		}
		if got := events(logs); len(got) != 1 || got[0] != "standby" {
			t.Errorf("a minute of standing by is %q", got)
		}
		for range 10 {
			_, _ = p.next(stopFor(wal.SlotMissing), &steady{})
			time.Sleep(decisionInterval)
		}
		if got := events(logs); len(got) != 10 {
			t.Errorf("ten minutes of being blocked are %q", got)
		}
		p.enter(Stopped, io.EOF)
		if got := events(logs); len(got) != 0 {
			t.Errorf("Run logs %q and returns it", got)
		}
	})
}

func TestAnOutageNamesEachCauseOnceAndNotManyOfThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, logs := observed(nil)
		p.enter(Streaming, nil)
		logs.TakeAll()
		for i := range 40 { // the connection ends, and then nobody listens
			cause := io.EOF
			if i%2 == 1 {
				cause = errors.New("connection refused")
			}
			_, _ = p.next(cause, &steady{})
			time.Sleep(time.Second)
		}
		if got := events(logs); len(got) != 2 {
			t.Errorf("two causes are %q", got)
		}
		for i := range 40 {
			_, _ = p.next(fmt.Errorf("cause %d", i), &steady{})
			time.Sleep(time.Second)
		}
		if got := events(logs); len(got) != maxCauses-2 {
			t.Errorf("many causes are %q", got)
		}
	})
}

func TestALongOutageIsMentionedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, logs := observed(nil)
		p.enter(Streaming, nil)
		logs.TakeAll()
		for began := time.Now(); time.Since(began) < 6*time.Hour; time.Sleep(maxRetry) {
			_, _ = p.next(io.EOF, &steady{})
		}
		if n := logs.Len(); n < 30 || n > 40 {
			t.Errorf("%d lines in six hours", n)
		}
	})
}
