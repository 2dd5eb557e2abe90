package demo

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// Summary is what the demo found. Its JSON names are stable.
type Summary struct {
	// OK: every guarantee held.
	OK bool `json:"ok"`
	// Interrupted: it was stopped before Options.Events were written. The
	// verdict is over what was written until then.
	Interrupted bool `json:"interrupted"`

	// Events counts the outbox rows in PostgreSQL's own history, Aggregates the
	// orders among them. Records counts what the consumer read, from Partitions
	// partitions.
	Events     int `json:"events"`
	Aggregates int `json:"aggregates"`
	Partitions int `json:"partitions"`
	Records    int `json:"records"`

	// What follows breaks a guarantee, except Repeated. See package verify.
	Lost            int `json:"lost"`
	OutOfOrder      int `json:"out_of_order"`
	VersionInverted int `json:"version_inverted"`
	Repeated        int `json:"repeated"`
	Foreign         int `json:"foreign"`
	Altered         int `json:"altered"`
	WrongPartition  int `json:"wrong_partition"`
	ExcessRewinds   int `json:"excess_rewinds"`
	EarlyConfirmed  int `json:"early_confirmed"`
	// ConfirmedSamples is how often the slot was compared with the topic.
	ConfirmedSamples int `json:"confirmed_samples"`

	// RolledBack counts transactions; an event of one would be Foreign.
	RolledBack int64 `json:"rolled_back"`
	// ConfirmedLSN is the slot's confirmed_flush_lsn after the publisher's end.
	// Unconfirmed events lie beyond it: they would be sent again.
	ConfirmedLSN string `json:"confirmed_lsn"`
	Unconfirmed  int    `json:"unconfirmed"`
	// RetainedWAL is from the slot's restart_lsn to the current position.
	RetainedWAL int64 `json:"retained_wal_bytes"`

	// EventsPerSecond is from the first commit to the last arrival.
	EventsPerSecond float64 `json:"events_per_second"`
	// P50 and P99 are from just before COMMIT is sent to the consumer.
	P50 float64 `json:"latency_p50_ms"`
	P99 float64 `json:"latency_p99_ms"`

	PostgreSQL string             `json:"postgresql"`
	Violations []verify.Violation `json:"violations,omitempty"`
}

// round keeps three digits behind the point.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }

func milliseconds(d time.Duration) float64 { return round(float64(d) / float64(time.Millisecond)) }

// Write prints the summary for a person.
func (s *Summary) Write(to io.Writer, look Look) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-20s%s\n", name, fmt.Sprintf(format, args...))
	}
	line("events", "%d", s.Events)
	line("aggregates", "%d orders", s.Aggregates)
	line("partitions", "%d", s.Partitions)
	line("lost", "%d", s.Lost)
	line("out of order", "%d", s.OutOfOrder)
	line("repeated", "%d", s.Repeated)
	line("rolled back", "%d transactions, %s", s.RolledBack, s.foreign())
	line("confirmed LSN", "%s, %s", s.ConfirmedLSN, s.confirmed())
	line("retained WAL", "%s", humanize.IBytes(uint64(max(0, s.RetainedWAL))))
	line("throughput", "%.0f events/s", s.EventsPerSecond)
	line("commit to consumer", "p50 %.1f ms, p99 %.1f ms", s.P50, s.P99)
	if s.OK {
		fmt.Fprintf(&b, "\n%s no loss, commit order, exact content, nothing confirmed before it was acknowledged\n", look.good("Guarantees held:"))
		fmt.Fprintf(&b, "(%d records compared with PostgreSQL's own history, read by test_decoding from a second slot)\n", s.Records)
	} else {
		fmt.Fprintf(&b, "\n%s\n", look.bad("A GUARANTEE WAS BROKEN:"))
		for _, v := range s.Violations {
			fmt.Fprintf(&b, "  %s: %s\n", v.Kind, v.Detail)
		}
	}
	_, err := io.WriteString(to, "\n"+b.String())
	return err
}

func (s *Summary) foreign() string {
	if s.Foreign == 0 {
		return "none of their events published"
	}
	return fmt.Sprintf("but %d records that no committed event explains", s.Foreign)
}

func (s *Summary) confirmed() string {
	if s.Unconfirmed == 0 {
		return "covers every event"
	}
	return fmt.Sprintf("%d events lie beyond it and would be sent again", s.Unconfirmed)
}
