package wal

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestSessionSettingsAreSentAtTheStart(t *testing.T) {
	want := map[string]string{
		"replication": "database", "datestyle": "ISO, YMD", "timezone": "UTC", "intervalstyle": "postgres", "extra_float_digits": "3",
		"bytea_output": "hex", "client_encoding": "UTF8", "client_min_messages": "notice", "wal_sender_timeout": "15000ms",
		"application_name": "cdcpub/test",
	}
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t)
		config := server.config()
		config.Connect = func(context.Context) (*ConnConfig, error) {
			return server.connConfig("postgres://cdcpub@fake/shop?sslmode=disable&TimeZone=Asia/Tokyo&DateStyle=German&application_name=cdcpub/test")
		}
		open(t, server, config)
		for name, value := range want {
			if got := server.startup[name]; got != value {
				t.Errorf("%s = %q, want %q", name, got, value)
			}
		}
		for name := range server.startup {
			if _, known := want[name]; strings.EqualFold(name, "timezone") && !known || strings.EqualFold(name, "datestyle") && !known {
				t.Errorf("%s is sent a second time: which one wins is chance", name)
			}
		}
	})
}

// open opens and ends a stream.
func open(t *testing.T, server *fakeServer, config Config) *Stream {
	t.Helper()
	stream, err := Open(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_ = stream.Run(ended, make(chan *Batch))
	server.closed.Wait()
	return stream
}

func TestReplicationStartsAtTheSlotsPositionWithQuotedNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t)
		config := server.config()
		config.Publication = `Out"bo'x`
		stream := open(t, server, config)
		last := server.queries[len(server.queries)-1]
		want := `START_REPLICATION SLOT outbox_slot LOGICAL 0/0 (proto_version '1', publication_names '"Out""bo''x"')`
		if strings.TrimSpace(last) != want {
			t.Errorf("sent %s\nwant %s", last, want)
		}
		if stream.Start() != slotConfirmed || stream.Confirmed() != slotConfirmed {
			t.Errorf("start %s, confirmed %s", stream.Start(), stream.Confirmed())
		}
	})
}

func TestAnIllegalSlotNameIsNeverSent(t *testing.T) {
	for _, name := range []string{"", "Upper", `x" LOGICAL 0/0; --`, strings.Repeat("a", 64)} {
		_, err := Open(context.Background(), Config{Slot: name, Connect: func(context.Context) (*ConnConfig, error) {
			t.Errorf("connected for slot name %q", name)
			return nil, errors.New("unreachable")
		}})
		var stop *StopError
		if !errors.As(err, &stop) || stop.Reason != SlotUnusable {
			t.Errorf("slot name %q: %v", name, err)
		}
	}
}

func TestOpenEndsWithItsContextAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t)
		config := server.config()
		server.dialed = 1
		server.look = func() lookResult { return lookResult{hangs: true} }
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		began := time.Now()
		if _, err := Open(ctx, config); err == nil || time.Since(began) > 31*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		server.closed.Wait()
	})
}

func TestPreviousIdentity(t *testing.T) {
	now := Identity{SystemID: "7000000000000000001", Timeline: 1, Publication: "500:700 600:701"}
	tests := map[string]struct {
		change func(*Identity)
		want   Reason // 0: accepted
	}{
		"the same":                {func(*Identity) {}, 0},
		"an older timeline":       {func(i *Identity) { i.Timeline = 0 }, 0},
		"another server":          {func(i *Identity) { i.SystemID = "7" }, ServerChanged},
		"the server is known":     {func(i *Identity) { *i = Identity{SystemID: i.SystemID} }, 0},
		"another server is known": {func(i *Identity) { *i = Identity{SystemID: "7"} }, ServerChanged},
		"publication made anew":   {func(i *Identity) { i.Publication = "499:690 600:701" }, PublicationChanged},
		"publication altered":     {func(i *Identity) { i.Publication = "500:699 600:701" }, PublicationChanged},
		"table dropped and added": {func(i *Identity) { i.Publication = "500:700 599:698" }, PublicationChanged},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer(t)
				config := server.config()
				previous := now
				test.change(&previous)
				config.Previous = &previous
				if test.want == 0 {
					if got := open(t, server, config).Identity(); got != now {
						t.Errorf("identity %+v", got)
					}
					return
				}
				refuses(t, server, config, test.want)
			})
		})
	}
}

// refuses opens and wants a StopError; replication must not have begun.
func refuses(t *testing.T, server *fakeServer, config Config, want Reason) {
	t.Helper()
	stream, err := Open(context.Background(), config)
	if stream != nil {
		t.Fatal("a stream")
	}
	wantReason(want)(t, err)
	server.closed.Wait()
	for _, q := range server.queries {
		if strings.HasPrefix(q, "START") {
			t.Errorf("replication began: %s", q)
		}
	}
}

// The driver's text has a line for each address and TLS mode.
func TestAnUnreachableServerIsOneLine(t *testing.T) {
	config := newFakeServer(t).config()
	config.Connect = func(context.Context) (*ConnConfig, error) {
		return pgconn.ParseConfig("postgres://cdcpub:secret@127.0.0.1:1,localhost:1/shop?sslmode=prefer")
	}
	_, err := Open(context.Background(), config)
	var unreachable *UnreachableError
	if !errors.As(err, &unreachable) {
		t.Fatalf("%T: %v", err, err)
	}
	for _, bad := range []string{"\n", "\t", "secret"} {
		if strings.Contains(err.Error(), bad) {
			t.Errorf("%q is in %q", bad, err)
		}
	}
	if !strings.Contains(err.Error(), "127.0.0.1:1") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("does not say where or why: %s", err)
	}
}
