package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var stalled = publisher.Status{
	State: publisher.Blocked, Role: "standby", Slot: "orders",
	Stall: &publisher.Stall{Kind: "blocked", Cause: "slot orders is lost", Since: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)},
}

func get(t *testing.T, s publisher.Status, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(sources(s)).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
	return w
}

// sources of a process that publishes.
func sources(s publisher.Status) Sources {
	return Sources{
		Publisher: func() publisher.Status { return s },
		Monitor:   func() monitor.Snapshot { return monitor.Snapshot{Servers: []monitor.Server{{Name: "db", Up: true}}} },
		Metrics:   says("metrics"), Page: says("page"),
	}
}

func says(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
}

func TestAnswers(t *testing.T) {
	ready := publisher.Status{State: publisher.Streaming, Role: "active", Ready: true}
	for _, c := range []struct {
		name, method, path string
		status             publisher.Status
		code               int
		body               string
	}{
		{"alive while publishing", "GET", "/livez", ready, 200, "ok\n"},
		{"alive while blocked: a restart would not help", "GET", "/livez", stalled, 200, "ok\n"},
		{"ready", "GET", "/readyz", ready, 200, "streaming\nrole: active\n"},
		{"not ready, with the cause", "GET", "/readyz", stalled, 503, "blocked\nrole: standby\nstalled since 2026-02-03T04:05:06Z: slot orders is lost\n"},
		{"ready for HEAD", "HEAD", "/readyz", ready, 200, "streaming\nrole: active\n"},
		{"a standby is ready", "GET", "/readyz", publisher.Status{State: publisher.Standby, Role: "standby", Ready: true}, 200, "standby\nrole: standby\n"},
		{"metrics", "GET", "/metrics", ready, 200, "metrics"},
		{"the page", "GET", "/", ready, 200, "page"},
		{"what the page needs", "GET", "/page/page.css", ready, 200, "page"},
		{"nothing can be posted", "POST", "/status", ready, 405, ""},
		{"no other page", "GET", "/debug/pprof/", ready, 404, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := get(t, c.status, c.method, c.path)
			if w.Code != c.code || c.body != "" && w.Body.String() != c.body {
				t.Errorf("%d %q, want %d %q", w.Code, w.Body, c.code, c.body)
			}
		})
	}
}

func TestStatusIsJSONWithStableNames(t *testing.T) {
	w := get(t, stalled, "GET", "/status")
	if w.Code != 200 || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", w.Code, w.Header().Get("Content-Type"))
	}
	var document map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{"state": "blocked", "role": "standby", "ready": false, "slot": "orders", "sessions": 0.0, "records_acknowledged": 0.0} {
		if document[name] != want {
			t.Errorf("%s is %v, want %v", name, document[name], want)
		}
	}
	servers, _ := document["monitor"].(map[string]any)["servers"].([]any)
	if len(servers) != 1 || servers[0].(map[string]any)["name"] != "db" {
		t.Errorf("monitor is %v", document["monitor"])
	}
	stall, _ := document["stall"].(map[string]any)
	if len(stall) != 3 || stall["kind"] != "blocked" || stall["cause"] != "slot orders is lost" || stall["since"] != "2026-02-03T04:05:06Z" {
		t.Errorf("stall is %v", document["stall"])
	}
}

// A monitor without a publisher has no state of its own.
func TestWatching(t *testing.T) {
	servers := []monitor.Server{{Name: "a", Asked: time.Now()}, {Name: "b"}}
	handler := Handler(Sources{
		Monitor: func() monitor.Snapshot { return monitor.Snapshot{Servers: servers} },
		Metrics: says("metrics"), Page: says("page"),
	})
	answer := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		return w
	}
	if w := answer("/readyz"); w.Code != 503 || w.Body.String() != "watching\nservers: 1 of 2 asked\n" {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	servers[1].Asked, servers[1].Unreachable = time.Now(), "connection refused"
	if w := answer("/readyz"); w.Code != 200 {
		t.Errorf("%d %q", w.Code, w.Body)
	}
	var document map[string]any
	if err := json.Unmarshal(answer("/status").Body.Bytes(), &document); err != nil {
		t.Fatal(err)
	}
	if len(document) != 1 || document["monitor"] == nil {
		t.Errorf("%v", document)
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	listener, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, listener, Handler(sources(stalled))) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + listener.Addr().String() + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(response.Body); string(body) != "ok\n" {
		t.Errorf("%q", body)
	}
	response.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestServeOfAnEndedContextFreesTheAddress(t *testing.T) {
	listener, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Serve(ctx, listener, http.NotFoundHandler()); err != nil {
		t.Error(err)
	}
	again, err := Listen(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}

func TestAddressInUseSaysWhatToDo(t *testing.T) {
	taken, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = Listen(taken.Addr().String())
	if err == nil || !strings.Contains(err.Error(), "http.listen") || !strings.Contains(err.Error(), "choose another address") {
		t.Errorf("%v", err)
	}
}
