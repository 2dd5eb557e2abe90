// Package admin serves what operators and orchestrators ask over HTTP:
//
//	GET /livez   200 while the process runs its loop
//	GET /readyz  200 while it publishes, idles or stands by; else 503
//	GET /status  what it is doing and what holds it up, as JSON
//
// It has no authentication and shows no secrets: the default address is
// loopback.
package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/cdcpub/cdcpub/internal/publisher"
)

// Handler answers from snapshots; status may be called from any goroutine.
func Handler(status func() publisher.Status) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		ready(w, status())
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(status()) // the client is gone
	})
	return mux
}

func ready(w http.ResponseWriter, s publisher.Status) {
	if !s.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintf(w, "%s (%s)\n", s.State, s.Role)
	if s.Stall != nil {
		fmt.Fprintf(w, "stalled since %s: %s\n", s.Stall.Since.UTC().Format(time.RFC3339), s.Stall.Cause)
	}
}

// Listen takes the address, so that a port in use is known before anything
// else begins.
func Listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("http.listen: %w; choose another address, or off", err)
	}
	return listener, nil
}

// Serve answers until ctx ends.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
