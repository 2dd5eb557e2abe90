package scenarios

import (
	"flag"
	"fmt"
	"testing"

	"github.com/cdcpub/cdcpub/test/harness"
)

var silentMiB = flag.Int("silence.mib", 300, "size of the transaction in TestSilentServerIsNotLeft, MiB")

// While PostgreSQL decodes a large transaction that is none of ours it may say
// nothing for longer than wal_sender_timeout. Whoever reconnects then has it
// decoded again, for ever.
func TestSilentServerIsNotLeft(t *testing.T) {
	for _, version := range versions {
		t.Run("PostgreSQL_"+version, func(t *testing.T) {
			parallel(t)
			s := newStand(t, options{
				postgres: harness.Postgres(t, version),
				sections: map[string]string{"postgres": "  wal_sender_timeout: 1s\n  status_interval: 500ms\n"},
			})
			s.exec("CREATE TABLE foreign_table (text text)")
			p := s.run()
			s.load(1, 10)
			s.delivered()
			s.exec(fmt.Sprintf("INSERT INTO foreign_table SELECT repeat('x', 1000) FROM generate_series(1, %d)", *silentMiB*1000))
			s.load(1, 10)
			s.delivered()
			s.stop(p)
			if report := s.check(nil); s.sessions() != 1 || report.Repeated != 0 {
				t.Errorf("%d sessions, %d repeated: the publisher left the server\n%s", s.sessions(), report.Repeated, p.Stderr())
			}
		})
	}
}
