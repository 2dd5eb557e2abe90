package scenarios

import (
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cdcpub/cdcpub/test/harness"
)

// chaosPublisher is a process that is started again when it ends, as a
// supervisor would.
type chaosPublisher struct {
	id     int
	link   *harness.Proxy
	listen string
	config string

	mu      sync.Mutex
	process *harness.Process
	started time.Time
}

// addPublisher makes a publisher with a link of its own to PostgreSQL.
func (w *chaosWorld) addPublisher(id int) {
	server := address(w.pg)
	if w.pair != nil {
		server = w.pair.front.Addr()
	}
	link, err := harness.NewProxy(server)
	w.no(err)
	w.options.login, w.listen = strings.Replace(w.url, server, link.Addr(), 1), w.freeAddress()
	w.publishers = append(w.publishers, &chaosPublisher{id: id, link: link, listen: w.listen, config: w.config()})
}

func (w *chaosWorld) start(p *chaosPublisher) {
	process := harness.StartProcess(w.t, harness.ProcessOptions{Binary: w.options.binary, Args: []string{"run", "-c", "{config}"}, Config: p.config})
	p.mu.Lock()
	p.process, p.started = process, time.Now()
	p.mu.Unlock()
	w.mu.Lock()
	w.logs = append(w.logs, process)
	w.mu.Unlock()
	go func() {
		code, err := process.Wait(w.ctx)
		if code == 3 { // it would only be refused again
			pause(w.ctx, 500*time.Millisecond)
		}
		if err == nil {
			w.exits <- p
		}
	}()
}

func (w *chaosWorld) process(i int) *harness.Process {
	p := w.publishers[i]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.process
}

func (w *chaosWorld) link(f chaosFault) *harness.Proxy { return w.publishers[f.target].link }

// restart ends the publishers, as a human does who has cured a cause and does
// not want to wait for the next try.
func (w *chaosWorld) restart() error {
	for i := range w.publishers {
		if err := w.process(i).Signal(syscall.SIGTERM); err != nil {
			return err
		}
	}
	return nil
}

// keepRunning starts what ends, until done.
func (w *chaosWorld) keepRunning(done func() bool) {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		select {
		case p := <-w.exits:
			w.ended(p)
			w.start(p)
		case <-ticker.C:
		case <-w.ctx.Done():
			w.t.Fatalf("the run does not end\n%s", w.log())
		}
	}
}

// ended notes an end. 2 is wrong at any time, since nothing that happens here is
// a matter of configuration; 3 is right only while there was no slot.
func (w *chaosWorld) ended(p *chaosPublisher) {
	code, _ := p.process.Wait(w.ctx)
	w.note("publisher %d ended with %d", p.id, code)
	if code == 2 || code == 3 && !w.slotWasGone(p.started) {
		w.problem("publisher %d ended with %d\n%s", p.id, code, p.process.Stderr())
	}
}

// endPublishers ends them as a supervisor does.
func (w *chaosWorld) endPublishers() {
	for _, p := range w.publishers {
		w.no(p.process.Signal(syscall.SIGTERM))
	}
	for range w.publishers {
		select {
		case p := <-w.exits:
			if code, _ := p.process.Wait(w.ctx); !w.endsWell(p, code) {
				w.problem("publisher %d ended with %d after SIGTERM\n%s", p.id, code, p.process.Stderr())
			}
		case <-w.ctx.Done():
			w.problem("a publisher does not end")
		}
	}
}

// unseenTakeover is what one of a pair says that has not seen the other one
// publish, and waits for a human (docs/guarantees.md, "Changes that nobody
// watched").
const unseenTakeover = "either another cdcpub published while this one could not look"

func (w *chaosWorld) endsWell(p *chaosPublisher, code int) bool {
	said := p.process.Stderr()
	switch code {
	case 0, 1: // 1: it had just learned that it has no slot any more
		return true
	case 4:
		w.note("publisher %d waits for a human", p.id)
		return len(w.publishers) > 1 && strings.Contains(said, unseenTakeover)
	case -1: // of the signal, before it has come to say anything
		return said == ""
	}
	return false
}
