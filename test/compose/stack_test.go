package compose

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/jackc/pgx/v5"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// patience bounds every wait. A slow machine is no failure.
const patience = 2 * time.Minute

// stack has servers of the harness in the place of the containers.
type stack struct {
	t        *testing.T
	ctx      context.Context
	project  *types.Project
	postgres *pgserver.Server
	kafka    *harness.Cluster
	binary   string
	listen   string            // of http.listen
	hosts    *strings.Replacer // of the containers, to those of the harness
}

func TestTheStackPublishesWhatTheShopWrites(t *testing.T) {
	s := start(t)
	if code, _ := s.healthy("cdcpub"); code == 0 {
		t.Error("the health check of service cdcpub is content without a slot")
	}
	s.ends("init")
	s.ends("init") // a second "docker compose up" runs it again
	const topic = "outbox.event.order"
	if n, err := harness.Partitions(s.ctx, s.kafka.Direct(), topic); err != nil || n[topic] != 12 {
		t.Fatalf("init leaves topics %v, want %s with 12 partitions: %v", n, topic, err)
	}

	publisher := s.starts("cdcpub")
	shop := s.psql(s.command("shop"), environment(s.project.Services["shop"]))
	var arrived []verify.Record
	must(t, harness.Follow(s.ctx, s.kafka.Direct(), []string{topic}, func(r verify.Record) bool {
		arrived = append(arrived, r)
		return len(arrived) < 20
	}))
	if code, err := s.healthy("cdcpub"); code != 0 {
		t.Errorf("the health check of service cdcpub ends with %d while it publishes: %v", code, err)
	}
	if status, text := s.get("/readyz"); status != http.StatusOK {
		t.Errorf("/readyz: %d %s", status, text)
	}
	must(t, shop.Signal(syscall.SIGINT))
	if _, err := shop.Wait(s.ctx); err != nil {
		t.Error(err)
	}
	must(t, publisher.Signal(syscall.SIGTERM))
	if code, err := publisher.Wait(s.ctx); code != 0 || err != nil {
		t.Errorf("service cdcpub ends with %d on SIGTERM: %v", code, err)
	}
	s.compare(topic)
}

// compare proves that the topic has what the shop committed, in order.
func (s *stack) compare(topic string) {
	s.t.Helper()
	records, err := harness.ReadAll(s.ctx, s.kafka.Direct(), topic)
	must(s.t, err)
	published := map[string][]string{}
	for _, r := range records {
		published[string(r.Key)] = append(published[string(r.Key)], header(r, "aggregateVersion")+" "+string(r.Value))
	}
	conn, err := pgx.Connect(s.ctx, s.postgres.URL("shop"))
	must(s.t, err)
	defer conn.Close(s.ctx)
	rows, err := conn.Query(s.ctx, "SELECT aggregate_id, array_agg(aggregate_version || ' ' || payload ORDER BY aggregate_version) FROM outbox GROUP BY 1")
	must(s.t, err)
	var orders int
	var key string
	var committed []string
	_, err = pgx.ForEachRow(rows, []any{&key, &committed}, func() error {
		orders++
		if !slices.Equal(published[key], committed) {
			s.t.Errorf("order %s: published %v, committed %v", key, published[key], committed)
		}
		return nil
	})
	must(s.t, err)
	if orders == 0 || orders != len(published) {
		s.t.Errorf("%d orders were committed, %d published", orders, len(published))
	}
}

func header(r verify.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

func TestWatchSeesTheSlotOfTheStack(t *testing.T) {
	s := start(t)
	s.ends("init")
	watcher := s.starts("watch")
	s.eventually("/metrics names the slot", func() bool {
		status, text := s.get("/metrics")
		return status == http.StatusOK && strings.Contains(text, `slot="cdcpub"`)
	})
	must(t, watcher.Signal(syscall.SIGTERM))
	if code, err := watcher.Wait(s.ctx); code != 0 || err != nil {
		t.Errorf("service watch ends with %d: %v", code, err)
	}
}
