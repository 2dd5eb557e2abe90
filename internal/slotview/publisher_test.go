package slotview

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

func answering(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

func body(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/status" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}
}

func TestAskTellsWhatThePublisherSays(t *testing.T) {
	address := answering(t, body(`{"state": "streaming", "role": "active", "slot": "cdcpub", "more": [1],
		"stall": {"kind": "broker", "cause": "topic a partition 3: no answer", "since": "2026-03-14T11:00:00Z", "topic": "a"}}`))
	for _, base := range []string{address, address + "/"} {
		got := *Ask(t.Context(), base, "cdcpub", time.Minute)
		want := slotmon.Publisher{
			Address: base, State: "streaming", Role: "active", Slot: "cdcpub",
			Stall: "topic a partition 3: no answer", StallSince: noon.Add(-time.Hour),
		}
		if got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

func TestAskSaysWhyThereIsNoAnswer(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ base, want string }{
		"nobody there":       {"http://" + gone.Addr().String(), "connection refused"},
		"another slot":       {answering(t, body(`{"state": "streaming", "slot": "orders"}`)), "publishes from slot orders"},
		"a monitor":          {answering(t, body(`{"monitor": {"servers": []}}`)), "publishes nothing"},
		"something else":     {answering(t, body(`<html>`)), "no cdcpub"},
		"another path":       {answering(t, body(``)) + "/elsewhere", "HTTP 404"},
		"not a URL":          {"http://a b/", "not a URL"},
		"an endless answer":  {answering(t, body(`{"state": "`+strings.Repeat("x", maxAnswer)+`"}`)), "no cdcpub"},
		"control characters": {answering(t, body(`{"state": "streaming", "slot": "a\u001b[2J"}`)), `a\x1b[2J`},
	} {
		got := Ask(t.Context(), c.base, "cdcpub", time.Minute)
		if !strings.Contains(got.Unanswered, c.want) || strings.Contains(got.Unanswered, "\n") {
			t.Errorf("%s: %q does not say %q", name, got.Unanswered, c.want)
		}
		if got.State != "" || got.Slot != "" || got.Stall != "" || got.Address == "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAskDoesNotWaitForEver(t *testing.T) {
	address := answering(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if got := Ask(t.Context(), address, "cdcpub", 50*time.Millisecond); got.Unanswered != "no answer within 50ms" {
		t.Errorf("%+v", got)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if got := Ask(ended, address, "cdcpub", time.Minute); got.Unanswered == "" {
		t.Errorf("%+v", got)
	}
}

func TestAskShowsNoPassword(t *testing.T) {
	got := Ask(t.Context(), "http://user:horse@127.0.0.1:1/", "cdcpub", time.Minute)
	if strings.Contains(got.Address+got.Unanswered, "horse") || got.Unanswered == "" {
		t.Errorf("%+v", got)
	}
}
