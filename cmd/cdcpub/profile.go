package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"runtime"
	"time"

	"go.uber.org/zap"
)

// A blocking event of this length is recorded on average once, and one of so
// many contended locks: enough to see where time goes, at a cost that does not
// move it.
const (
	blockProfileRate     = 10 * time.Microsecond
	mutexProfileFraction = 100
)

// profile serves net/http/pprof on a loopback address until stop is called.
// Profiles name no data, but whoever may read them may also slow the process.
// With "" it does nothing.
func profile(address string, log *zap.Logger) (stop func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil || host != "localhost" && !net.ParseIP(host).IsLoopback() {
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("--pprof %s: want a loopback address with a port, such as 127.0.0.1:6060", address)}
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, &exitError{code: exitFailure, err: fmt.Errorf("--pprof %s: %w", address, err)}
	}
	runtime.SetBlockProfileRate(int(blockProfileRate))
	runtime.SetMutexProfileFraction(mutexProfileFraction)
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Warn("profiles are no longer served", zap.String("event", "pprof_ended"), zap.Error(err))
		}
	}()
	log.Info("profiles are served", zap.String("event", "pprof"), zap.String("address", "http://"+listener.Addr().String()+"/debug/pprof/"))
	return func() {
		_ = server.Close() // a profile that is being taken is cut
		<-done
	}, nil
}
