package kafka

import "github.com/rcrowley/go-metrics"

// noMetrics is a registry without metrics. sarama updates a dozen of them per
// request and keeps a goroutine for its meters; ours come from Status.
type noMetrics struct{}

// Each implements metrics.Registry.
func (noMetrics) Each(func(string, any)) {}

// Get implements metrics.Registry.
func (noMetrics) Get(string) any { return nil }

// GetAll implements metrics.Registry.
func (noMetrics) GetAll() map[string]map[string]any { return nil }

// GetOrRegister implements metrics.Registry. The argument is a metric or its
// constructor; the result is of the same kind and does nothing.
func (noMetrics) GetOrRegister(_ string, metric any) any {
	switch metric.(type) {
	case func() metrics.Meter, metrics.Meter:
		return metrics.NilMeter{}
	case func() metrics.Histogram, metrics.Histogram:
		return metrics.NilHistogram{}
	case func() metrics.Counter, metrics.Counter:
		return metrics.NilCounter{}
	default:
		return metric
	}
}

// Register implements metrics.Registry.
func (noMetrics) Register(string, any) error { return nil }

// RunHealthchecks implements metrics.Registry.
func (noMetrics) RunHealthchecks() {}

// Unregister implements metrics.Registry.
func (noMetrics) Unregister(string) {}

// UnregisterAll implements metrics.Registry.
func (noMetrics) UnregisterAll() {}
