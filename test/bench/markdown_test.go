package bench

import (
	"fmt"
	"slices"
	"strings"
)

// markdown is the report for people: medians, and the least and the most where
// they tell how far to trust them.
func (r *report) markdown() string {
	var b strings.Builder
	m := r.Machine
	fmt.Fprintf(&b, "# Benchmark\n\n%s, commit %s. %s, %d cores shared by everything. PostgreSQL %s, Apache Kafka %s with one broker, %s",
		m.Date, m.Commit, m.CPU, m.Cores, m.PostgreSQL, m.Kafka, m.Go)
	if m.Debezium != "" {
		fmt.Fprintf(&b, ", Debezium %s", m.Debezium)
	}
	fmt.Fprintf(&b, ".\n\nMedians of %d rounds, of a steady load %d (least to most in parentheses); the subjects take turns within a\n"+
		"round, and ratios are of the same round. CPU is in us per event. `make bench` measures it; package `test/bench` says how.\n", r.Rounds, min(r.Rounds, steadyRounds))
	for _, load := range r.Loads {
		fmt.Fprintf(&b, "\n## %s\n\n", strings.ToUpper(load[:1])+load[1:])
		if results := r.of(load, r.subjects(load)[0]); results[0].Latency != nil {
			r.latencies(&b, load)
		} else {
			r.drains(&b, load)
		}
	}
	return b.String()
}

func (r *report) drains(b *strings.Builder, load string) {
	fmt.Fprintln(b, "| | events/s | MB/s of payload | of pg_recvlogical | first record | CPU itself | walsender | broker | peak RSS | allocations per event |")
	fmt.Fprintln(b, "|---|---|---|---|---|---|---|---|---|---|")
	for _, subject := range r.subjects(load) {
		all := r.of(load, subject)
		ratio, first, broker, allocations := "1", "-", "-", "-"
		if subject != reference {
			ratio = r.ratios(load, subject, reference, result.rate)
			first = middle(all, "%.2f s", func(o result) float64 { return o.First })
			broker = middle(all, "%.1f", func(o result) float64 { return o.perEvent(o.Broker) })
		}
		if all[0].Allocations > 0 {
			allocations = middle(all, "%.2f", func(o result) float64 { return float64(o.Allocations) / float64(o.Rows) })
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", subject, spread(all, "%.0f", result.rate),
			middle(all, "%.1f", func(o result) float64 { return o.rate() * float64(o.Payload) / 1e6 }), ratio, first,
			spread(all, "%.1f", func(o result) float64 { return o.perEvent(o.Subjects) }),
			middle(all, "%.1f", func(o result) float64 { return o.perEvent(o.Walsender) }), broker,
			middle(all, "%.0f MiB", func(o result) float64 { return float64(o.PeakRSS) / (1 << 20) }), allocations)
	}
	for _, other := range []string{debeziumWarm, debeziumCold} {
		if len(r.of(load, other)) == 0 || len(r.of(load, cdcpub)) == 0 {
			continue
		}
		fmt.Fprintf(b, "\ncdcpub against %s: %s times its rate, %s of its CPU, %s of its memory.\n", other,
			r.ratios(load, cdcpub, other, result.rate),
			r.ratios(load, cdcpub, other, func(o result) float64 { return o.perEvent(o.Subjects) }),
			r.ratios(load, cdcpub, other, func(o result) float64 { return float64(o.PeakRSS) }))
	}
}

func (r *report) latencies(b *strings.Builder, load string) {
	fmt.Fprintln(b, "From just before COMMIT to the consumer.\n\n| | events/s reached | p50 | p99 | p99.9 | most | COMMIT alone p50 | p99 | CPU of a core | broker | peak RSS |\n|---|---|---|---|---|---|---|---|---|---|---|")
	for _, subject := range r.subjects(load) {
		all := r.of(load, subject)
		ms := func(of func(*latency) float64) string {
			return spread(all, "%.2f ms", func(o result) float64 { return of(o.Latency) })
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", subject, middle(all, "%.0f", result.rate),
			ms(func(l *latency) float64 { return l.P50 }), ms(func(l *latency) float64 { return l.P99 }),
			ms(func(l *latency) float64 { return l.P999 }), ms(func(l *latency) float64 { return l.Max }),
			middle(all, "%.2f ms", func(o result) float64 { return o.Commit.P50 }),
			middle(all, "%.2f ms", func(o result) float64 { return o.Commit.P99 }),
			middle(all, "%.0f %%", func(o result) float64 { return 100 * o.Subjects / o.Seconds }),
			middle(all, "%.0f %%", func(o result) float64 { return 100 * o.Broker / o.Seconds }),
			middle(all, "%.0f MiB", func(o result) float64 { return float64(o.PeakRSS) / (1 << 20) }))
	}
}

// ratios compares two subjects round by round.
func (r *report) ratios(load, subject, to string, of func(result) float64) string {
	ours, theirs := r.of(load, subject), r.of(load, to)
	if len(ours) != len(theirs) || len(theirs) == 0 {
		return "-"
	}
	values := make([]float64, len(ours))
	for i := range ours {
		values[i] = of(ours[i]) / of(theirs[i])
	}
	return spreadOf(values, "%.2f")
}

func values(results []result, of func(result) float64) []float64 {
	all := make([]float64, len(results))
	for i, r := range results {
		all[i] = of(r)
	}
	return all
}

func middle(results []result, format string, of func(result) float64) string {
	return fmt.Sprintf(format, median(values(results, of)))
}

func spread(results []result, format string, of func(result) float64) string {
	return spreadOf(values(results, of), format)
}

// spreadOf is "median (least to most)", with the unit once.
func spreadOf(values []float64, format string) string {
	text := fmt.Sprintf(format, median(values))
	if len(values) < 2 {
		return text
	}
	bare, _, _ := strings.Cut(format, " ")
	return text + fmt.Sprintf(" ("+bare+" to "+bare+")", slices.Min(values), slices.Max(values))
}

// median is the middle value, the mean of the middle two of an even number.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
