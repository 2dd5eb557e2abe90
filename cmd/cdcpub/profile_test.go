package main

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/zap"
	logged "go.uber.org/zap/zaptest/observer"
)

func TestProfilesAreServedOnLoopbackUntilTheEnd(t *testing.T) {
	core, logs := logged.New(zap.InfoLevel)
	stop, err := profile("127.0.0.1:0", zap.New(core))
	if err != nil {
		t.Fatal(err)
	}
	address := logs.All()[0].ContextMap()["address"].(string)
	for _, one := range []string{"", "heap?debug=1", "allocs?debug=1", "block?debug=1", "mutex?debug=1", "goroutine?debug=1"} {
		response, err := http.Get(address + one)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK || len(body) == 0 {
			t.Errorf("%s: %s", one, response.Status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	stop()
	if _, err := http.Get(address); err == nil {
		t.Error("profiles are served after the end")
	}
}

func TestProfilesAreServedNowhereElse(t *testing.T) {
	for _, address := range []string{":6060", "0.0.0.0:6060", "192.0.2.1:6060", "example.org:6060", "6060", "[::]:6060"} {
		_, err := profile(address, zap.NewNop())
		exit, ok := errors.AsType[*exitError](err)
		if !ok || exit.code != exitUsage || !strings.Contains(err.Error(), "loopback") {
			t.Errorf("--pprof %s: %v", address, err)
		}
	}
	if stop, err := profile("", zap.NewNop()); err != nil {
		t.Error(err)
	} else {
		stop()
	}
}
