package wal

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

func fatal(code string) *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: code, Message: "as the test wants"}
}

func refusal(code string) *pgproto3.ErrorResponse {
	return &pgproto3.ErrorResponse{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: code, Message: "as the test wants"}
}

// ends runs a stream until what the server writes ends it.
func ends(t *testing.T, check func(*testing.T, error), messages ...pgproto3.BackendMessage) {
	t.Helper()
	inFakeTime(t, func(r *running) {
		r.discard()
		go r.sender.write(messages...)
		check(t, r.end())
		if !r.sender.ended().IsZero() {
			t.Error("CopyDone after an error")
		}
	})
}

// unreadably runs a stream until it cannot read what the server writes. The
// connection is as good as before, so what came before can still be confirmed.
func unreadably(t *testing.T, check func(*testing.T, error), messages ...pgproto3.BackendMessage) {
	t.Helper()
	inFakeTime(t, func(r *running) {
		frames := []byte{}
		for _, payload := range transaction(0x2000, "a") {
			frames = append(frames, copyDataFrame(payload)...)
		}
		for _, m := range messages {
			frames, _ = m.Encode(frames)
		}
		go r.sender.conn.Write(frames)
		if got := kinds(r.events(3)); got != "BIC" {
			t.Errorf("events before the message: %s", got)
		}
		if r.take() != nil {
			t.Error("another batch")
		}
		r.stream.Confirm(0x2030)
		r.stream.Finish()
		check(t, r.end())
		wantFlush(t, r.sender.last(), 0x2030)
		if r.sender.ended().IsZero() {
			t.Error("no CopyDone although the connection is good")
		}
	})
}

func TestTheWaitForFinishAfterAnUnreadableMessageIsBounded(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.discard()
		began := time.Now()
		go r.sender.send([]byte{'x'})
		wantMalformed(t, r.end())
		if took := time.Since(began); took > serverStopLimit+finishLimit {
			t.Errorf("took %s", took)
		}
	})
}

func wantReason(want Reason) func(*testing.T, error) {
	return func(t *testing.T, err error) {
		t.Helper()
		var stop *StopError
		if !errors.As(err, &stop) {
			t.Fatalf("%v (%T) is not a StopError", err, err)
		}
		if stop.Reason != want || stop.Slot != fakeSlot || stop.Cure == "" || !strings.Contains(err.Error(), stop.Cure) {
			t.Errorf("reason %d, slot %q: %v", stop.Reason, stop.Slot, err)
		}
	}
}

func wantCode(code string) func(*testing.T, error) {
	return func(t *testing.T, err error) {
		t.Helper()
		var stop *StopError
		var refused *pgconn.PgError
		if errors.As(err, &stop) || !errors.As(err, &refused) || refused.Code != code {
			t.Errorf("%v (%T), want the server's own error %s", err, err, code)
		}
	}
}

func wantError(want error) func(*testing.T, error) {
	return func(t *testing.T, err error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

func wantMalformed(t *testing.T, err error) {
	t.Helper()
	var malformed *MalformedError
	if !errors.As(err, &malformed) {
		t.Errorf("%v (%T) is not a MalformedError", err, err)
	}
}

func TestErrorsOfTheServerKeepTheirClass(t *testing.T) {
	tests := map[string]struct {
		message *pgproto3.ErrorResponse
		check   func(*testing.T, error)
	}{
		"publication missing up to 17":   {refusal("42704"), wantReason(PublicationTooNew)},
		"terminated or invalidated":      {fatal("57P01"), wantCode("57P01")},
		"shutting down":                  {fatal("57P03"), wantCode("57P03")},
		"privilege taken away":           {fatal("42501"), wantReason(AccessDenied)},
		"object not in the needed state": {refusal("55000"), wantCode("55000")},
		"out of memory":                  {refusal("53200"), wantCode("53200")},
		"text without UTF-8":             {refusal("22P05"), wantReason(RowUnreadable)},
		"bytes that are no text":         {refusal("22021"), wantReason(RowUnreadable)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { ends(t, test.check, test.message) })
	}
}

func TestTheServersEndIsAnErrorOfItsOwn(t *testing.T) {
	t.Run("CommandComplete", func(t *testing.T) {
		ends(t, wantError(ErrServerEnded), &pgproto3.CommandComplete{CommandTag: []byte("COPY 0")})
	})
	t.Run("CopyDone", func(t *testing.T) { ends(t, wantError(ErrServerEnded), &pgproto3.CopyDone{}) })
	t.Run("EOF", func(t *testing.T) {
		inFakeTime(t, func(r *running) {
			r.discard()
			_ = r.sender.conn.Close()
			if err := r.end(); err == nil {
				t.Error("no error")
			}
		})
	})
	t.Run("EOF within a message", func(t *testing.T) {
		inFakeTime(t, func(r *running) {
			r.discard()
			_, _ = r.sender.conn.Write(copyDataFrame(transaction(0x2000, "a")[0])[:9])
			_ = r.sender.conn.Close()
			if err := r.end(); err == nil {
				t.Error("no error")
			}
		})
	})
}

func TestWhatTheProtocolDoesNotAllowIsMalformed(t *testing.T) {
	copyData := func(data ...byte) pgproto3.BackendMessage { return &pgproto3.CopyData{Data: data} }
	tests := map[string]pgproto3.BackendMessage{
		"empty CopyData":             copyData(),
		"unknown kind of CopyData":   copyData('x', 1, 2, 3),
		"XLogData without its head":  copyData('w', 0, 0, 0),
		"XLogData without a message": copyData(xlogData(0x2000, nil)...),
		"keepalive cut short":        copyData(keepalive(0x2000, true)[:12]...),
		"keepalive with more":        copyData(append(keepalive(0x2000, true), 7)...),
		"row outside a transaction":  copyData(xlogData(0x2000, insertMessage(1, text("a")))...),
		"a query's answer":           &pgproto3.ReadyForQuery{TxStatus: 'I'},
	}
	for name, message := range tests {
		t.Run(name, func(t *testing.T) { unreadably(t, wantMalformed, message) })
	}
	t.Run("garbage", func(t *testing.T) {
		inFakeTime(t, func(r *running) {
			r.discard()
			go r.sender.conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			if err := r.end(); err == nil {
				t.Error("no error")
			}
			if n := r.server.open.Load(); n != 0 {
				t.Errorf("%d connections are open after Run", n)
			}
			r.sleep(time.Minute)
			if n := len(r.server.lookTimes()); n != 0 {
				t.Errorf("%d connections were made after Run", n)
			}
		})
	})
}

// PostgreSQL 18 only warns when the publication is missing, and skips rows.
func TestTheNoticeOfAMissingPublicationStops(t *testing.T) {
	ends(t, wantReason(PublicationTooNew), &pgproto3.NoticeResponse{
		Severity: "WARNING", Code: "55000", Routine: "LoadPublications", Message: `skipped loading publication "Out""box"`})
}

func TestTheWaitForStandbysIsAStallWithItsCause(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.discard()
		notice := &pgproto3.NoticeResponse{Severity: "WARNING", Code: "55000", Routine: "StandbySlotsHaveCaughtup",
			Message: `replication slot "standby1" does not have active_pid`, Detail: "Logical replication is waiting."}
		r.sleep(1000)
		r.sender.write(notice)
		r.sleep(1000)
		stall := r.stream.Stall()
		if stall == nil || !strings.Contains(stall.Cause, "standby1") {
			t.Fatalf("stall %+v", stall)
		}
		r.sender.write(notice)
		r.send(keepalive(slotConfirmed, false))
		if again := r.stream.Stall(); again == nil || again.Since != stall.Since {
			t.Errorf("stall %+v after %+v: a keepalive that does not move ended or restarted it", again, stall)
		}
		r.send(keepalive(slotConfirmed+1, false))
		if stall := r.stream.Stall(); stall != nil {
			t.Errorf("stall %+v after the server moved on", stall)
		}
		r.sender.write(notice)
		r.send(transaction(0x2000, "a")...)
		if stall := r.stream.Stall(); stall != nil {
			t.Errorf("stall %+v after a row", stall)
		}
	})
}

func TestOtherNoticesMeanNothing(t *testing.T) {
	inFakeTime(t, func(r *running) {
		r.sender.write(&pgproto3.NoticeResponse{Severity: "WARNING", Code: "55000", Routine: "elsewhere", Message: "skipped loading publication"},
			&pgproto3.ParameterStatus{Name: "in_hot_standby", Value: "off"})
		r.send(transaction(0x2000, "a")...)
		if got := kinds(r.events(3)); got != "BIC" {
			t.Errorf("events %s", got)
		}
	})
}
