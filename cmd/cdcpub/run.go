package main

import (
	"context"
	"errors"
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
)

type runCommand struct {
	configFile
	PProf string `name:"pprof" placeholder:"HOST:PORT" help:"Serve profiles of the running process (net/http/pprof) on this loopback address."`
}

// Help is shown below the flags' overview.
func (runCommand) Help() string {
	return `Reads the slot in commit order, publishes each row of the outbox tables, and
confirms a position when all in-sync replicas have everything up to it. If
another process holds the slot, it stands by and takes over.

The first SIGTERM or SIGINT delivers and confirms what was read, within
shutdown_timeout; a second one ends at once. State, metrics and health are at
http.listen.

Exit code: 0 everything delivered; 1 a restart may cure it; 2 configuration; 3 a
check before the start refused; 4 a human must decide before the next start.

Example:

    cdcpub run -c cdcpub.yaml`
}

func (c *runCommand) Run(ctx context.Context, p *process) error {
	loaded, err := c.load(p)
	if err != nil {
		return err
	}
	log, err := newLogger(loaded.Log, zapcore.Lock(zapcore.AddSync(p.stderr)))
	if err != nil {
		return &exitError{code: exitUsage, err: err}
	}
	stopProfiles, err := profile(c.PProf, log)
	if err != nil {
		return err
	}
	defer stopProfiles()
	service, err := assemble(loaded, log)
	if err != nil {
		return err
	}
	defer service.client.Close()
	return service.run(ctx, p, loaded, log)
}

// run serves until the first signal, which lets it drain, or the second, which
// ends it at once.
func (s *service) run(ctx context.Context, p *process, c *config.Config, log *zap.Logger) error {
	target, err := publishingTarget(c, s.publisher)
	if err != nil {
		return err
	}
	observer, err := newObserver(c, []monitor.Target{target}, observed{publisher: s.publisher.Status, kafka: s.client.Counters}, log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer observer.close(log)
	defer cancel(nil)
	if err := observer.start(ctx, c, cancel); err != nil {
		return err
	}
	log.Info("starting", zap.String("event", "starting"), zap.String("version", buildVersion()), zap.String("http_listen", observer.address()),
		zap.String("slot", c.Postgres.Slot), zap.String("publication", c.Postgres.Publication), zap.Strings("brokers", c.Kafka.Brokers))
	observer.running.Go(func() { s.tellSystemd(ctx, log) })
	err = s.publisher.Run(ctx, s.stopOn(ctx, p.signals, cancel, log))
	var stopped *publisher.StoppedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &stopped):
		code := exitRefused
		if stopped.Decision {
			code = exitDecision
		}
		log.Error("stopped: a human must act", zap.String("event", "stopped"), zap.Error(err))
		return &exitError{code: code, err: err, silent: true}
	}
	log.Error("stopped", zap.String("event", "stopped"), zap.Error(err))
	return &exitError{code: exitFailure, err: err, silent: true}
}

// signalEcho is how long the same wish may be repeated: wrappers such as
// coreutils' timeout signal both the process and its group.
const signalEcho = 500 * time.Millisecond

var errSecondSignal = errors.New("a second signal ended cdcpub before everything was delivered; what is unconfirmed will be sent again")

// stopOn returns a channel that the first signal closes.
func (s *service) stopOn(ctx context.Context, signals <-chan os.Signal, cancel context.CancelCauseFunc, log *zap.Logger) <-chan struct{} {
	stop := make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case received := <-signals:
				switch {
				case first.IsZero():
					first = time.Now()
					log.Info("stopping; a second signal ends at once", zap.String("event", "signal"), zap.Stringer("signal", received))
					close(stop)
				case time.Since(first) > signalEcho:
					cancel(errSecondSignal)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop
}
