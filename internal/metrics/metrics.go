package metrics

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cdcpub/cdcpub/internal/kafka"
	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
)

// Sources are what the metrics are made of. The functions return snapshots and
// may be called from any goroutine; a nil one leaves out the metrics that are
// made of it.
type Sources struct {
	Version string
	// Publisher and Kafka are nil in a process that only monitors.
	Publisher func() publisher.Status
	Kafka     func() kafka.Counters
	Monitor   func() monitor.Snapshot
}

// New returns the handler of /metrics. Beside the metrics of cdcpub it has those
// of the Go runtime and of the process, and, as
// promhttp_metric_handler_errors_total, how often a scrape was incomplete. Safe
// for concurrent use.
func New(sources Sources) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(sources), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		Registry: registry,
		// One metric that cannot be had hides no other.
		ErrorHandling: promhttp.ContinueOnError,
	})
}
