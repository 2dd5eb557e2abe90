package page

import (
	"context"
	"net/http"
	"time"

	"github.com/cdcpub/cdcpub/internal/latency"
	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
)

// Source is what the page shows. Its functions may be called from any goroutine
// at any time.
type Source struct {
	Version string
	// Publisher returns the state of the publisher in this process. A nil
	// function, and a nil result: there is none.
	Publisher func() *publisher.Status
	// Latency returns the times from commit to acknowledgement since the start
	// of the process. A nil function: they are not measured.
	Latency func() latency.Histogram
	Monitor func() monitor.Snapshot
	// Poll is how often an open page asks, 5 seconds if 0.
	Poll time.Duration
}

const defaultPoll = 5 * time.Second

// Page is the status page and its memory of the last hour.
type Page struct {
	source  Source
	meter   meter // owned by Run
	history *history
	assets  assets
}

// New assembles a page. Its history is empty until Run runs.
func New(source Source) *Page {
	if source.Poll == 0 {
		source.Poll = defaultPoll
	}
	return &Page{source: source, history: newHistory(time.Now()), assets: loadAssets()}
}

// Handler serves the page and its data. Safe for concurrent use.
func (p *Page) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.assets.serve("index.html"))
	for name := range p.assets {
		if name != "index.html" {
			mux.HandleFunc("GET /page/"+name, p.assets.serve(name))
		}
	}
	mux.HandleFunc("GET /page/now", p.serveNow)
	mux.HandleFunc("GET /page/history", p.serveHistory)
	return guarded(mux)
}

// Run takes a point into the history at once and then every Step, until ctx
// ends. One goroutine at a time may run it.
func (p *Page) Run(ctx context.Context) {
	ticker := time.NewTicker(Step)
	defer ticker.Stop()
	for {
		p.history.add(p.meter.measure(p.observe(time.Now())))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// observation is everything that the source says at one moment.
type observation struct {
	at        time.Time
	publisher *publisher.Status  // nil: none
	latency   *latency.Histogram // nil: not measured
	monitor   monitor.Snapshot
}

func (p *Page) observe(at time.Time) observation {
	o := observation{at: at, monitor: p.source.Monitor()}
	if p.source.Publisher != nil {
		o.publisher = p.source.Publisher()
	}
	if p.source.Latency != nil {
		h := p.source.Latency()
		o.latency = &h
	}
	return o
}
