package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/internal/witness"
)

// Publish runs the publisher until stop is closed, and returns how many
// replication connections it opened. It returns nil after a shutdown that left
// nothing behind.
type Publish func(ctx context.Context, c *config.Config, stop <-chan struct{}) (sessions int, err error)

// Options say what to show.
type Options struct {
	// Postgres is the user's own server; empty starts one.
	Postgres config.ConnString
	// Brokers are those of the user's own cluster, without TLS and SASL; none
	// starts a broker in this process.
	Brokers []string
	// Events ends the demo after that many; 0 goes on until stop is closed.
	Events int
	// Rate is events per second; 0 is as fast as possible.
	Rate float64
	// Partitions of the topic.
	Partitions int32
	// Records gets a line for each record; nil gets none.
	Records io.Writer
	// Look is how those lines look.
	Look Look
	// Notes gets lines that say what is going on.
	Notes io.Writer
	// Listen is the address of the publisher's HTTP server, empty for none.
	Listen string
	// Publish is the publisher.
	Publish Publish
}

// errInterrupted halts the writers; everything else goes its way.
var errInterrupted = errors.New("stopped before the first event was written")

// Run shows the demo until Options.Events have been written or stop is closed,
// and returns the verdict. Nothing that it created is left when it returns,
// unless the error says so. When ctx ends it stops at once, without a verdict.
func Run(ctx context.Context, o Options, stop <-chan struct{}) (summary *Summary, err error) {
	began := time.Now()
	stage, err := open(ctx, o, stop)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stage.close()) }()
	stage.introduce(o.Notes, time.Since(began))
	p := &performance{
		options: o, stage: stage,
		ledger: newLedger(), printer: &printer{to: o.Records, look: o.Look},
	}
	return p.run(ctx, stop)
}

// performance is one run on an open stage.
type performance struct {
	options Options
	stage   *stage
	ledger  *ledger
	printer *printer
}

func (p *performance) run(ctx context.Context, stop <-chan struct{}) (*Summary, error) {
	// running ends at the first failure; writing also ends when stop is closed.
	running, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	writing, halt := context.WithCancelCause(running)
	defer halt(nil)
	go func() {
		select {
		case <-stop:
			fmt.Fprintln(p.options.Notes, "Stopping: what was committed is delivered first. Ctrl-C again ends at once.")
			halt(errInterrupted)
		case <-writing.Done():
		}
	}()

	consumer := witness.NewConsumer(p.stage.broker.addresses, []string{p.stage.broker.topic}, func(arrived []verify.Record, at time.Time) {
		p.ledger.arrived(arrived, at)
		if err := p.printer.print(arrived); err != nil {
			fail(err)
		}
	})
	defer consumer.Close()
	go func() {
		<-consumer.Done()
		fail(consumer.Err())
	}()
	publisher := p.publish(ctx, fail)
	defer publisher.end()
	sampler := startSampler(running, p.stage, fail)
	defer sampler.stop()

	if err := awaitReader(writing, p.stage.database.sql); err != nil && !errors.Is(err, errInterrupted) {
		return nil, err
	}
	shop := newShop(p.stage.database.sql, p.ledger)
	if err := shop.run(ctx, writing.Done(), pace(writing.Done(), p.options.Rate, p.options.Events)); err != nil {
		return nil, err
	}
	if err := p.ledger.wait(running); err != nil {
		return nil, err
	}
	if err := publisher.end(); err != nil {
		return nil, fmt.Errorf("the publisher: %w", err)
	}
	samples, err := sampler.stop()
	if err != nil {
		return nil, err
	}
	e, err := p.gather(running, consumer, samples)
	if err != nil {
		return nil, err
	}
	e.sessions, e.rolledBack = publisher.sessions, shop.rolledBack.Load()
	e.interrupted = errors.Is(context.Cause(writing), errInterrupted)
	if e.interrupted && len(e.rows) == 0 {
		return nil, errInterrupted
	}
	return e.judge(p.ledger), nil
}

// publishing is the publisher at work. Its fields belong to the goroutine that
// called publish; the result is read after done is closed.
type publishing struct {
	stop, done chan struct{}
	stopped    bool
	sessions   int
	err        error
}

// publish starts the publisher. An end that nobody asked for fails the demo.
func (p *performance) publish(ctx context.Context, fail context.CancelCauseFunc) *publishing {
	run := &publishing{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(run.done)
		run.sessions, run.err = p.options.Publish(ctx, p.stage.config, run.stop)
		select {
		case <-run.stop:
		default:
			fail(fmt.Errorf("the publisher ended: %w", orUnexplained(run.err)))
		}
	}()
	return run
}

// end lets the publisher drain and waits for it. It may be called again.
func (p *publishing) end() error {
	if !p.stopped {
		p.stopped = true
		close(p.stop)
	}
	<-p.done
	return p.err
}

func orUnexplained(err error) error {
	if err == nil {
		return errors.New("without an error")
	}
	return err
}
