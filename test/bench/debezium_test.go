package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

// connect is one Kafka Connect worker. A second connector on it meets a JVM
// that the first has warmed up.
type connect struct {
	process
	rest  string
	last  string    // the newest connector
	asked time.Time // when it was last asked how it is
}

const connectLogging = `rootLogger.level = WARN
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1} %m%n
`

// startConnect starts a worker with one connector.
func (s *stand) startConnect(b *testing.B, k *backlog, at place, latency bool) *connect {
	java := harness.FindJava(b, "debezium")
	ports, err := pgserver.FreePorts(1)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	rest := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	logging := written(b, dir, "log4j2.properties", connectLogging)
	worker := written(b, dir, "worker.properties", properties(map[string]string{
		"bootstrap.servers": s.kafka.Brokers()[0],
		"key.converter":     "org.apache.kafka.connect.storage.StringConverter", "value.converter": "org.apache.kafka.connect.storage.StringConverter",
		"header.converter": "org.apache.kafka.connect.storage.StringConverter", "offset.storage.file.filename": filepath.Join(dir, "offsets"),
		"offset.flush.interval.ms": "1000", "listeners": rest, "plugin.discovery": "service_load",
		"connector.client.config.override.policy": "All",
	}))
	c := &connect{rest: rest, last: "outbox0"}
	settings := s.connector(b, k, at, latency)
	settings["name"] = c.last
	connector := written(b, dir, "outbox.properties", properties(settings))
	c.process = process{harness.StartProcess(b, harness.ProcessOptions{Binary: java.Program, Args: []string{
		"-Xms256m", "-Xmx1g", "-Dlog4j2.configurationFile=" + logging, "-cp", filepath.Join(java.Jars, "*"),
		"org.apache.kafka.connect.cli.ConnectStandalone", worker, connector,
	}})}
	return c
}

// connector is the configuration of the Outbox Event Router: with batches and
// linger that are good for throughput, or for latency.
func (s *stand) connector(b *testing.B, k *backlog, at place, latency bool) map[string]string {
	server, err := url.Parse(k.url)
	if err != nil {
		b.Fatal(err)
	}
	settings := map[string]string{
		"connector.class": "io.debezium.connector.postgresql.PostgresConnector", "tasks.max": "1",
		"database.hostname": server.Hostname(), "database.port": server.Port(), "database.user": server.User.Username(),
		"database.password": "none", "database.dbname": strings.TrimPrefix(server.Path, "/"),
		"topic.prefix": at.slot, "plugin.name": "pgoutput", "slot.name": at.slot, "publication.name": "cdcpub",
		"publication.autocreate.mode": "disabled", "table.include.list": "public.outbox", "snapshot.mode": "no_data",
		"tombstones.on.delete": "false", "skipped.operations": "u,d,t", "max.batch.size": "8192", "max.queue.size": "32768",
		"poll.interval.ms": "10", "extended.headers.enabled": "false", "statistics.metrics.enabled": "false",
		"transforms": "outbox", "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
		"transforms.outbox.table.field.event.id": "event_id", "transforms.outbox.table.field.event.key": "aggregate_id",
		"transforms.outbox.table.field.event.payload": "payload", "transforms.outbox.table.expand.json.payload": "false",
		"transforms.outbox.table.fields.additional.placement": "event_type:header:eventType,aggregate_version:header:aggregateVersion",
		"transforms.outbox.route.by.field":                    "aggregate_type",
		"transforms.outbox.route.topic.replacement":           at.topics.prefix + ".${routedByValue}",
		"producer.override.acks":                              "all", "producer.override.linger.ms": "20",
		"producer.override.batch.size": "262144", "producer.override.compression.type": "lz4",
	}
	if latency {
		maps.Copy(settings, map[string]string{"poll.interval.ms": "1", "producer.override.linger.ms": "0"})
	}
	return settings
}

// again ends the connector and starts another, on the same JVM. The drain that
// is measured begins when it returns.
func (c *connect) again(b *testing.B, settings map[string]string) {
	c.ask(b, http.MethodDelete, "/connectors/"+c.last, nil, http.StatusNoContent)
	c.last += "0"
	body, err := json.Marshal(map[string]any{"name": c.last, "config": settings})
	if err != nil {
		b.Fatal(err)
	}
	c.ask(b, http.MethodPost, "/connectors", body, http.StatusCreated)
}

func (c *connect) ask(b *testing.B, method, path string, body []byte, want int) {
	request, err := http.NewRequestWithContext(b.Context(), method, c.rest+path, bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); response.StatusCode != want {
		b.Fatalf("%s %s: %s: %s", method, path, response.Status, text)
	}
}

// statusInterval keeps the question from costing what is measured.
const statusInterval = time.Second

// failed looks at the task: when it fails the process goes on.
func (c *connect) failed() error {
	if err := c.process.failed(); err != nil {
		return err
	}
	if time.Since(c.asked) < statusInterval {
		return nil
	}
	c.asked = time.Now()
	client := http.Client{Timeout: time.Second}
	response, err := client.Get(c.rest + "/connectors/" + c.last + "/status")
	if err != nil {
		return nil // it has not started yet
	}
	defer response.Body.Close()
	if text, _ := io.ReadAll(response.Body); bytes.Contains(text, []byte(`"FAILED"`)) {
		return fmt.Errorf("Debezium has failed: %s", text)
	}
	return nil
}

// properties is a file in the format of java.util.Properties.
func properties(settings map[string]string) string {
	var b strings.Builder
	for name, value := range settings {
		fmt.Fprintf(&b, "%s=%s\n", name, value)
	}
	return b.String()
}

func written(b *testing.B, dir, name, content string) string {
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		b.Fatal(err)
	}
	return path
}
