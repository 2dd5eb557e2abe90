package metrics

import (
	"math"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cdcpub/cdcpub/internal/latency"
)

// collector implements prometheus.Collector. It is never written to.
type collector struct {
	sources   Sources
	described []*prometheus.Desc

	build     *family
	publisher publisherFamilies
	kafka     kafkaFamilies
	servers   serverFamilies
	slots     slotFamilies
	alerts    alertFamilies
}

func newCollector(sources Sources) *collector {
	c := &collector{sources: sources}
	c.build = c.gauge("build_info", "1. The version of this cdcpub is the label.", "version")
	if sources.Publisher != nil {
		c.publisher = newPublisherFamilies(c)
	}
	if sources.Kafka != nil {
		c.kafka = newKafkaFamilies(c)
	}
	if sources.Monitor != nil {
		c.servers, c.slots, c.alerts = newServerFamilies(c), newSlotFamilies(c), newAlertFamilies(c)
	}
	return c
}

// family is a metric name with its help and labels.
type family struct {
	name string
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func (c *collector) gauge(name, help string, labels ...string) *family {
	return c.family(prometheus.GaugeValue, name, help, labels)
}

func (c *collector) counter(name, help string, labels ...string) *family {
	return c.family(prometheus.CounterValue, name, help, labels)
}

// histogram describes one that scrape.histogram sends.
func (c *collector) histogram(name, help string) *family {
	return c.family(prometheus.UntypedValue, name, help, nil)
}

func (c *collector) family(kind prometheus.ValueType, name, help string, labels []string) *family {
	f := &family{name: name, kind: kind, desc: prometheus.NewDesc("cdcpub_"+name, help, labels, nil)}
	c.described = append(c.described, f.desc)
	return f
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range c.described {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	s := &scrape{out: out, now: time.Now(), seen: make(map[string]bool)}
	s.put(c.build, 1, c.sources.Version)
	if c.sources.Publisher != nil {
		status := c.sources.Publisher()
		c.publisher.collect(s, &status)
	}
	if c.sources.Kafka != nil {
		counters := c.sources.Kafka()
		c.kafka.collect(s, &counters)
	}
	if c.sources.Monitor != nil {
		snapshot := c.sources.Monitor()
		for i := range snapshot.Servers {
			server := &snapshot.Servers[i]
			c.servers.collect(s, server)
			for j := range server.Slots {
				c.slots.collect(s, server, &server.Slots[j])
			}
		}
		c.alerts.collect(s, &snapshot)
	}
}

// scrape is one round of Collect.
type scrape struct {
	out  chan<- prometheus.Metric
	now  time.Time
	seen map[string]bool // series
}

// put sends a series, unless one of the same labels was sent. NaN is a number
// that is not known.
func (s *scrape) put(f *family, value float64, labels ...string) {
	if math.IsNaN(value) || !s.first(f, labels) {
		return
	}
	metric, err := prometheus.NewConstMetric(f.desc, f.kind, value, labels...)
	s.send(f, metric, err)
}

func (s *scrape) histogram(f *family, h *latency.Histogram) {
	buckets, below := make(map[float64]uint64, len(latency.Bounds)), uint64(0)
	for i, bound := range latency.Bounds {
		below += h.Counts[i]
		buckets[bound] = below
	}
	metric, err := prometheus.NewConstHistogram(f.desc, h.Count(), h.Sum, buckets)
	s.send(f, metric, err)
}

func (s *scrape) send(f *family, metric prometheus.Metric, err error) {
	if err != nil {
		metric = prometheus.NewInvalidMetric(f.desc, err)
	}
	s.out <- metric
}

// first makes the labels valid and says whether they are new.
func (s *scrape) first(f *family, labels []string) bool {
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], "\uFFFD")
	}
	series := f.name + "\xff" + strings.Join(labels, "\xff")
	if s.seen[series] {
		return false
	}
	s.seen[series] = true
	return true
}

// since is the time from then to the scrape in seconds, 0 for the future.
func (s *scrape) since(then time.Time) float64 { return max(0, s.now.Sub(then).Seconds()) }

// at sends an instant, nothing for the zero one.
func (s *scrape) at(f *family, t time.Time, labels ...string) {
	if !t.IsZero() {
		s.put(f, float64(t.UnixMilli())/1000, labels...)
	}
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
