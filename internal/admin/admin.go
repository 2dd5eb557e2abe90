// Package admin serves what operators, orchestrators and Prometheus ask over
// HTTP:
//
//	GET /livez    200 while the publisher can say what it does; no answer if it
//	              hangs
//	GET /readyz   200 while it publishes, idles or stands by; a monitor without
//	              a publisher is ready when it has tried each server; else 503
//	GET /status   what it is doing, what holds it up, and the slots, as JSON
//	GET /metrics  the same for Prometheus
//	GET /         the same for people
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
	"syscall"
	"time"

	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
)

// Sources are what the answers are made of. The functions return snapshots and
// may be called from any goroutine.
type Sources struct {
	// Publisher is nil in a process that only monitors.
	Publisher func() publisher.Status
	Monitor   func() monitor.Snapshot
	Metrics   http.Handler
	// Page answers / and everything below /page/.
	Page http.Handler
}

// Handler answers from the sources.
func Handler(s Sources) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		if s.Publisher != nil {
			s.Publisher() // who hangs does not answer
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.Publisher == nil {
			watching(w, s.Monitor())
			return
		}
		ready(w, s.Publisher())
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		_ = encoder.Encode(s.status()) // the client is gone
	})
	mux.Handle("GET /metrics", s.Metrics)
	mux.Handle("GET /{$}", s.Page)
	mux.Handle("GET /page/", s.Page)
	return mux
}

// Status is the document of /status. Its JSON names are stable.
type Status struct {
	*publisher.Status
	Monitor monitor.Snapshot `json:"monitor"`
}

func (s *Sources) status() Status {
	status := Status{Monitor: s.Monitor()}
	if s.Publisher != nil {
		published := s.Publisher()
		status.Status = &published
	}
	return status
}

func ready(w http.ResponseWriter, s publisher.Status) {
	if !s.Ready {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintf(w, "%s\nrole: %s\n", s.State, s.Role)
	if s.Stall != nil {
		fmt.Fprintf(w, "stalled since %s: %s\n", s.Stall.Since.UTC().Format(time.RFC3339), s.Stall.Cause)
	}
}

// watching: a server that does not answer makes its slots unknown, not the
// monitor unready.
func watching(w http.ResponseWriter, s monitor.Snapshot) {
	asked := 0
	for _, server := range s.Servers {
		if !server.Asked.IsZero() {
			asked++
		}
	}
	if asked < len(s.Servers) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	fmt.Fprintf(w, "watching\nservers: %d of %d asked\n", asked, len(s.Servers))
}

// Listen takes the address, so that a port in use is known before anything
// else begins.
func Listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("http.listen: another process listens at %s; choose another address, or off", address)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("http.listen: %s is no address of this machine; choose another address, 0.0.0.0 for all of them, or off", address)
	case err != nil:
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
