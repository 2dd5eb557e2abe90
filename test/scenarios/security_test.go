package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/pgserver"
	"github.com/cdcpub/cdcpub/test/harness"
)

// hba lets cdcpub in by TLS and SCRAM alone, and the test as the superuser.
const hba = `hostnossl all postgres 127.0.0.1/32 trust
hostssl all all 127.0.0.1/32 scram-sha-256
hostssl replication all 127.0.0.1/32 scram-sha-256
`

// TLS and SCRAM on both sides. Everything that can be rotated is, while cdcpub
// runs: passwords, the server's certificate and the authorities; then the
// connections are cut.
func TestRotationOnBothSidesUnderLoad(t *testing.T) {
	tomorrow := time.Now().Add(20 * time.Hour)
	first, second := harness.NewAuthority(t, "the first CA"), harness.NewAuthority(t, "the second CA")
	server := first.Issue(t, "server", "localhost", tomorrow)
	pg := harness.PostgresWith(t, pgserver.Options{
		Settings: map[string]string{"ssl": "on", "ssl_cert_file": "server.crt", "ssl_key_file": "server.key", "password_encryption": "scram-sha-256"},
		Files:    map[string]string{"server.crt": server.PEM, "server.key": server.Key, "pg_hba.conf": hba},
	})
	kafka := harness.Kafka(t, harness.KafkaOptions{
		ViaProxy: true, Listeners: map[string]string{"CLIENT": "SASL_SSL"},
		Config: harness.Settings(harness.SSLListener("CLIENT", server.BothFile, ""), harness.SASLListener("CLIENT", nil, "SCRAM-SHA-512")),
	})
	files := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(files, name)
		if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := write("ca.crt", first.PEM)
	s := newStand(t, options{postgres: pg, kafka: kafka, http: true, sections: map[string]string{
		"postgres": fmt.Sprintf("  password_command: [cat, %s]\n", write("postgres", "hush-1\n")),
		"kafka": fmt.Sprintf("  tls: {enabled: true, ca_file: %s}\n  sasl: {mechanism: SCRAM-SHA-512, user: cdcpub, password_file: %s}\n",
			ca, write("kafka", "hush-1\n")),
	}})
	s.exec("CREATE ROLE cdcpub LOGIN REPLICATION PASSWORD 'hush-1'")
	s.no(kafka.SetScramUser(s.ctx, "cdcpub", "hush-1"))
	s.options.login = fmt.Sprintf("postgres://cdcpub@127.0.0.1:%d/%s?sslmode=verify-full&sslrootcert=%s", pg.Port(), s.slot, ca)

	p := s.run()
	s.load(20, 5)
	s.delivered()

	// The new authority is trusted beside the old one before it is used.
	write("ca.crt", first.PEM+second.PEM)
	renewed := second.Issue(t, "server", "localhost", tomorrow)
	s.no(pg.WriteFile("server.crt", renewed.PEM))
	s.no(pg.WriteFile("server.key", renewed.Key))
	s.exec("SELECT pg_reload_conf()")
	s.exec("ALTER ROLE cdcpub PASSWORD 'hush-2'")
	s.no(kafka.SetScramUser(s.ctx, "cdcpub", "hush-2"))
	write("postgres", "hush-2\n")
	write("kafka", "hush-2\n")
	s.load(20, 5)
	s.exec("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'cdcpub'")
	kafka.Proxy(0).Cut()
	s.no(kafka.Proxy(0).Restore())
	s.load(20, 5)
	s.delivered()

	// The old passwords open nothing any more.
	write("kafka", "hush-1\n")
	kafka.Proxy(0).Cut()
	s.no(kafka.Proxy(0).Restore())
	s.load(1, 1)
	s.stalledFor(`does not accept user "cdcpub" with its password (SASL SCRAM-SHA-512)`)
	write("kafka", "hush-2\n")
	s.delivered()
	s.stop(p)
	if log := p.Stderr(); strings.Contains(log, "hush") {
		t.Errorf("the log has a password:\n%s", log)
	}
	s.check(nil)
}

// stalledFor waits until /status names the cause.
func (s *stand) stalledFor(cause string) {
	s.t.Helper()
	s.until("stalled: "+cause, func() bool {
		named, _ := s.status().at("stall", "cause").(string)
		return strings.Contains(named, cause)
	})
}
