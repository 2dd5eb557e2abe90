//go:build !release

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"go.uber.org/zap/zapcore"
	"golang.org/x/sys/unix"

	"github.com/cdcpub/cdcpub/internal/admin"
	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/demo"
)

type demoCommands struct {
	Demo demoCommand `cmd:"" help:"Show it at work on this machine: PostgreSQL, an order shop, the publisher, a Kafka broker and a consumer."`
}

type demoCommand struct {
	Events     int      `placeholder:"N" help:"End after N events. Without it, Ctrl-C ends the demo."`
	Rate       float64  `default:"20" placeholder:"N" help:"Events per second (20); 0 is as fast as possible."`
	Partitions int32    `default:"3" placeholder:"N" help:"Partitions of the topic (3)."`
	Postgres   string   `placeholder:"URL" help:"Use this server, with wal_level=logical, instead of starting one."`
	Brokers    []string `placeholder:"HOST:PORT" help:"Use these Kafka brokers, without TLS and SASL, instead of one in the process."`
	Output     string   `short:"o" enum:"text,json" default:"text" placeholder:"FORMAT" help:"text prints records and a summary, json only the summary, as one object."`
	Verbose    bool     `help:"Show the publisher's whole log on standard error, not only warnings."`
}

// Help is shown below the flags' overview.
func (demoCommand) Help() string {
	return `Examples:

    cdcpub demo --events 100
    cdcpub demo --rate 0 --events 100000 -o json
    cdcpub demo --postgres postgres://postgres@localhost/test --brokers localhost:9092

The PostgreSQL server is one that is installed (14 or newer), else one that is downloaded and cached. Everything that the demo creates is removed at its end. On servers given by --postgres and --brokers it uses the schema, publication and slot cdcpub_demo and the topic cdcpub.demo.orders, and refuses to begin if they exist.

At the end, what the consumer read is compared with PostgreSQL's own history of the outbox, read from a second slot by test_decoding. The exit code is 0 only if every guarantee held.

Keys of -o json: ok, interrupted; events, aggregates, partitions, records; lost, out_of_order, version_inverted, repeated, foreign, altered, wrong_partition, excess_rewinds, early_confirmed, confirmed_samples; rolled_back, confirmed_lsn, unconfirmed, retained_wal_bytes; events_per_second, latency_p50_ms, latency_p99_ms; postgresql; violations (absent if there are none).`
}

// Validate is called by the parser.
func (c *demoCommand) Validate() error {
	var problems []error
	if c.Events < 0 {
		problems = append(problems, errors.New("--events must not be negative"))
	}
	if c.Rate < 0 {
		problems = append(problems, errors.New("--rate must not be negative"))
	}
	if c.Partitions < 1 || c.Partitions > 1000 {
		problems = append(problems, errors.New("--partitions must be from 1 to 1000"))
	}
	return errors.Join(problems...)
}

func (c *demoCommand) Run(ctx context.Context, p *process) error {
	// A reader that went away must end the demo in order, not kill it, since
	// there may be a slot to drop: with Notify, its write fails instead.
	closed := make(chan os.Signal, 1)
	signal.Notify(closed, syscall.SIGPIPE)
	defer signal.Stop(closed)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	options := demo.Options{
		Postgres: config.ConnString(c.Postgres), Brokers: c.Brokers,
		Events: c.Events, Rate: c.Rate, Partitions: c.Partitions,
		Records: p.stdout, Look: look(p.stdout, p.env), Notes: p.stderr,
		Listen: freeListen(), Publish: c.publisher(p),
	}
	if c.Output == "json" {
		options.Records = nil
	}
	summary, err := demo.Run(ctx, options, stopAtSignal(ctx, p.signals, cancel))
	if summary != nil {
		err = errors.Join(c.print(p.stdout, summary, options.Look), err)
	}
	return verdict(summary, err)
}

// verdict turns the outcome into an error with the right exit code.
func verdict(summary *demo.Summary, err error) error {
	var leftovers *demo.LeftoversError
	switch {
	case errors.As(err, &leftovers):
		return &exitError{code: exitRefused, err: err}
	case errors.Is(err, syscall.EPIPE):
		return &exitError{code: exitFailure, err: err, silent: true}
	case err == nil && !summary.OK: // the summary says what
		return &exitError{code: exitFailure, err: errors.New("a guarantee was broken"), silent: true}
	}
	return err
}

func (c *demoCommand) print(to io.Writer, summary *demo.Summary, look demo.Look) error {
	if c.Output != "json" {
		return summary.Write(to, look)
	}
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(summary)
}

// publisher is what `cdcpub run` does, with another source of signals.
func (c *demoCommand) publisher(p *process) demo.Publish {
	return func(ctx context.Context, settings *config.Config, stop <-chan struct{}) (int, error) {
		settings.Log.Format, settings.Log.Level = config.FormatConsole, config.LevelWarn
		if c.Verbose {
			settings.Log.Level = config.LevelInfo
		}
		log, err := newLogger(settings.Log, zapcore.Lock(zapcore.AddSync(p.stderr)))
		if err != nil {
			return 0, err
		}
		service, err := assemble(settings, log)
		if err != nil {
			return 0, err
		}
		defer service.client.Close()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		signals := make(chan os.Signal, 1)
		go func() {
			select {
			case <-stop:
				signals <- os.Interrupt
			case <-ctx.Done():
			}
		}()
		err = service.run(ctx, &process{signals: signals, stderr: p.stderr}, settings, log)
		return service.publisher.Status().Sessions, err
	}
}

var errSecondInterrupt = errors.New("a second signal ended the demo without a verdict")

// stopAtSignal returns a channel that the first signal closes. The second one
// cancels.
func stopAtSignal(ctx context.Context, signals <-chan os.Signal, cancel context.CancelCauseFunc) <-chan struct{} {
	stop := make(chan struct{})
	hangup := make(chan os.Signal, 1)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup makes it
		signal.Notify(hangup, syscall.SIGHUP)
	}
	go func() {
		defer signal.Stop(hangup)
		for received := 0; ; {
			select {
			case <-signals:
			case <-hangup:
			case <-ctx.Done():
				return
			}
			if received++; received == 1 {
				close(stop)
			} else {
				cancel(errSecondInterrupt)
			}
		}
	}()
	return stop
}

// freeListen is the usual address of the publisher's HTTP server if it is
// free, else another one.
func freeListen() string {
	for _, address := range []string{config.Default().HTTP.Listen, "127.0.0.1:0"} {
		if listener, err := admin.Listen(address); err == nil {
			defer listener.Close()
			return listener.Addr().String()
		}
	}
	return ""
}

// look is for a terminal if the output is one. See https://no-color.org.
func look(to io.Writer, env []string) demo.Look {
	file, ok := to.(*os.File)
	if !ok {
		return demo.Look{}
	}
	size, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return demo.Look{}
	}
	width := int(size.Col)
	if width == 0 {
		width = 120
	}
	return demo.Look{Colour: variable(env, "NO_COLOR") == "" && variable(env, "TERM") != "dumb", Width: width}
}

func variable(env []string, name string) string {
	for _, setting := range env {
		if value, ok := strings.CutPrefix(setting, name+"="); ok {
			return value
		}
	}
	return ""
}
