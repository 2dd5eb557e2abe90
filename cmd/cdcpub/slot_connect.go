package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/cdcpub/cdcpub/internal/config"
)

// slotFlags are what every slot command has: where the server is.
type slotFlags struct {
	configFile
	URL string `name:"url" placeholder:"URL" help:"Connection string in place of postgres.url and postgres.password_file; no configuration file is then needed."`
}

// slotServer is the server that a slot command works on.
type slotServer struct {
	*sqlServer
	// config is what file and environment state, and --url for Postgres.URL.
	// There may be no slot in it.
	config *config.Config
}

// server reads the configuration. It does not touch the network.
func (f slotFlags) server(p *process) (*slotServer, error) {
	loaded, err := f.loadSlots(p)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &exitError{code: exitUsage, err: fmt.Errorf("%w, or the server with --url", err)}
	case err != nil:
		return nil, err
	}
	var asked *sqlServer
	timeout := time.Duration(loaded.SlotMonitor.Timeout)
	switch {
	case f.URL != "":
		asked, err = serverAt(config.ConnString(f.URL), "--url", slotApplication, timeout)
	case loaded.Postgres.URL == "":
		err = errors.New("no server is named: state postgres.url, or --url")
	default:
		asked, err = publishedServer(loaded, slotApplication, timeout)
	}
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	return &slotServer{sqlServer: asked, config: loaded}, nil
}

// loadSlots lets --url take the place of postgres.url and its password file.
// What the configuration says about another server is then left out.
func (f slotFlags) loadSlots(p *process) (*config.Config, error) {
	loaded, err := f.loadFor(p, config.NeedSlots)
	if f.URL == "" {
		return loaded, err
	}
	elsewhere := err == nil && !sameServer(loaded.Postgres, config.ConnString(f.URL))
	if err != nil {
		// No file, or no URL in it. The rest has to be right in any case.
		with := *p
		with.env = append(slices.Clone(p.env), "CDCPUB_POSTGRES_URL=postgres://localhost")
		if loaded, err = f.loadFor(&with, config.NeedSlots); err != nil {
			return nil, err
		}
	}
	changed := *loaded
	changed.Postgres.URL, changed.Postgres.PasswordFile, changed.Postgres.PasswordCommand = config.ConnString(f.URL), "", nil
	if elsewhere {
		changed.SlotMonitor.Volume, changed.SlotMonitor.Standbys, changed.HTTP.Advertise = config.Volume{}, nil, ""
	}
	return &changed, nil
}

// sameServer tells if the connection string leads to where the configuration
// does, whoever the user is. A configuration without one contradicts nothing.
func sameServer(configured config.Postgres, url config.ConnString) bool {
	if configured.URL == "" {
		return true
	}
	a, err := configured.URL.ConnConfig("postgres.url")
	if err != nil {
		return false
	}
	b, err := url.ConnConfig("--url")
	return err == nil && a.Host == b.Host && a.Port == b.Port
}

// untilSignal returns a context that ends with the first signal, which is then
// its cause.
func untilSignal(ctx context.Context, p *process) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case received := <-p.signals:
			cancel(&signalError{received})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// signalError is the cause of a context that a signal ended.
type signalError struct{ received os.Signal }

func (e *signalError) Error() string { return "ended by " + e.received.String() }
