package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pglogrepl"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

const (
	rounds    = 3
	partition = 12
)

// drain is one kind of backlog: what PostgreSQL holds when cdcpub starts.
type drain struct {
	server *pgserver.Server
	kafka  *harness.Cluster
	sql    *pgx.Conn
	url    string
	rows   int
	end    pglogrepl.LSN
}

func BenchmarkDrainThousandRowTransactions(b *testing.B) { benchmarkDrain(b, 1000, 1000) }

func BenchmarkDrainSingleRowTransactions(b *testing.B) { benchmarkDrain(b, 300_000, 1) }

func benchmarkDrain(b *testing.B, transactions, rows int) {
	d := &drain{server: harness.Postgres(b, "", "max_wal_size=8GB", "max_replication_slots=20"), kafka: harness.Kafka(b, harness.KafkaOptions{})}
	binary := harness.Build(b, harness.BuildOptions{Tags: "release"})
	d.prepare(b, binary, transactions, rows)
	for range b.N {
		var reference, ours, ratios []float64
		for round := range rounds {
			a, p := d.recvlogical(b, round), d.cdcpub(b, binary, round)
			reference, ours, ratios = append(reference, a), append(ours, p), append(ratios, p/a)
			b.Logf("round %d: pg_recvlogical %.0f rows/s, cdcpub %.0f rows/s, ratio %.2f", round, a, p, p/a)
		}
		b.ReportMetric(median(reference), "pg_recvlogical-rows/s")
		b.ReportMetric(median(ours), "cdcpub-rows/s")
		b.ReportMetric(median(ratios), "ratio")
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func (d *drain) config(slot string, round int) string {
	return fmt.Sprintf("postgres: {url: %q, slot: %s, publication: cdcpub}\noutbox: {tables: [public.outbox]}\n"+
		"kafka: {brokers: [%s], topic: %s}\nhttp: {listen: off}\n", d.url, slot, d.kafka.Brokers()[0], topic(round))
}

func topic(round int) string { return fmt.Sprintf("bench.%d", round) }

// prepare creates the outbox and one slot per run, then the backlog that every
// slot holds.
func (d *drain) prepare(b *testing.B, binary string, transactions, rows int) {
	ctx := b.Context()
	d.url = d.server.URL(harness.Database(b, d.server))
	p := harness.StartProcess(b, harness.ProcessOptions{Binary: binary, Args: []string{"init", "-c", "{config}"}, Config: d.config("cdcpub", 0)})
	if code, err := p.Wait(ctx); code != 0 || err != nil {
		b.Fatalf("cdcpub init: exit %d %v", code, err)
	}
	var err error
	if d.sql, err = pgx.Connect(ctx, d.url); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.sql.Close(context.Background()) })
	for round := range rounds {
		for _, kind := range []string{"reference", "ours"} {
			d.exec(b, fmt.Sprintf("SELECT pg_copy_logical_replication_slot('cdcpub', '%s_%d')", kind, round))
		}
		if err := d.kafka.CreateTopic(ctx, topic(round), partition, 1, nil); err != nil {
			b.Fatal(err)
		}
	}
	d.exec(b, "SELECT pg_drop_replication_slot('cdcpub')")
	d.exec(b, fmt.Sprintf(`DO $$ BEGIN FOR t IN 0..%d LOOP
		INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		SELECT 'order', 'order-' || i %% 10000, i / 10000, 'OrderChanged', jsonb_build_object('number', i, 'note', repeat('x', 200))
		FROM generate_series(t * %d, (t + 1) * %d - 1) i;
		COMMIT; END LOOP; END $$`, transactions-1, rows, rows))
	d.rows = transactions * rows
	if err := d.sql.QueryRow(ctx, "SELECT pg_current_wal_lsn()").Scan(&d.end); err != nil {
		b.Fatal(err)
	}
	d.exec(b, "CHECKPOINT")
}

func (d *drain) exec(b *testing.B, sql string) {
	b.Helper()
	if _, err := d.sql.Exec(b.Context(), sql); err != nil {
		b.Fatal(err)
	}
}

// recvlogical is the reference: PostgreSQL's own reader, to /dev/null.
func (d *drain) recvlogical(b *testing.B, round int) float64 {
	program := filepath.Join(d.server.Installation().Bin, "pg_recvlogical")
	if _, err := os.Stat(program); err != nil {
		b.Fatalf("%v: install it with: apt-get install postgresql-15", err)
	}
	command := exec.CommandContext(b.Context(), program, "-d", d.url,
		"--slot", fmt.Sprintf("reference_%d", round), "--start", "--no-loop", "-f", "/dev/null", "--endpos", d.end.String(),
		"-o", "proto_version=1", "-o", "publication_names=cdcpub")
	began := time.Now()
	if out, err := command.CombinedOutput(); err != nil {
		b.Fatalf("pg_recvlogical: %v\n%s", err, out)
	}
	return float64(d.rows) / time.Since(began).Seconds()
}

// cdcpub is measured from its start until the slot has confirmed everything.
func (d *drain) cdcpub(b *testing.B, binary string, round int) float64 {
	slot := fmt.Sprintf("ours_%d", round)
	began := time.Now()
	p := harness.StartProcess(b, harness.ProcessOptions{Binary: binary, Args: []string{"run", "-c", "{config}"}, Config: d.config(slot, round)})
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		lsn, err := harness.ConfirmedFlushLSN(b.Context(), d.url, slot)
		if err != nil {
			b.Fatal(err)
		}
		if lsn >= d.end {
			break
		}
		<-ticker.C
	}
	took := time.Since(began)
	if err := p.Signal(syscall.SIGTERM); err != nil {
		b.Fatal(err)
	}
	if code, err := p.Wait(b.Context()); code != 0 || err != nil {
		b.Fatalf("exit %d %v\n%s", code, err, p.Stderr())
	}
	b.Logf("round %d: cdcpub used %.2f us of CPU per row, VmHWM %.1f MiB", round, float64(p.CPU().Microseconds())/float64(d.rows), float64(p.VmHWM())/(1<<20))
	return float64(d.rows) / took.Seconds()
}
