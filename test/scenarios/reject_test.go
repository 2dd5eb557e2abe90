package scenarios

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/test/harness"
)

// A topic that takes 20,000 bytes a batch, and a producer that does not
// compress, so that one large record is refused and its neighbours are not.
var (
	rejectingTopic    = map[string]string{"max.message.bytes": "20000"}
	rejectingSections = map[string]string{
		"kafka": "  compression: none\n  batch_bytes: 16KiB\n",
		"":      "shutdown_timeout: 1s\n",
	}
)

func TestRejectedRecordHoldsBackWhatIsBehindIt(t *testing.T) {
	for name, at := range map[string][]int{"first": {0}, "middle": {10}, "last": {19}, "two adjacent": {9, 10}} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			rejected(newStand(t, options{topic: rejectingTopic, sections: rejectingSections}), at)
		})
	}
}

// rejected writes twenty rows of one aggregate, those at the given places too
// large for the topic. Nothing behind the first of them may arrive until the
// topic's limit is raised, and then everything does.
func rejected(s *stand, at []int) {
	p := s.run()
	s.exec("BEGIN")
	for i := range 20 {
		size := 100
		if slices.Contains(at, i) {
			size = 50_000
		}
		s.exec(`INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
			VALUES ('order', 'one', $1, 'T', to_jsonb(repeat('x', $2)))`, i, size)
	}
	s.exec("COMMIT")
	s.load(5, 10)
	line := s.awaitLog(p, "rejected")
	if topic, slot := line["topic"], line["slot"]; topic != s.topic || slot != s.slot {
		s.t.Errorf("the error names topic %v and slot %v", topic, slot)
	}
	report := s.judge(func(o *verify.Options) { o.Incomplete = true })
	if !report.OK() || report.Pending == 0 {
		s.t.Fatalf("while the record stands still:\n%s", report.Table())
	}
	if code := s.deliverToALargerTopic(p); code != 1 {
		s.t.Errorf("exit %d although not everything was delivered", code)
	}
	s.check(nil)
}

// deliverToALargerTopic ends a publisher whose record is refused, and has another
// one deliver everything once the topic takes it.
func (s *stand) deliverToALargerTopic(p *harness.Process) (code int) {
	s.t.Helper()
	s.no(p.Signal(syscall.SIGTERM))
	code = s.exit(p)
	limit := "1000000"
	s.no(s.kafka.AlterTopicConfig(s.ctx, s.topic, "max.message.bytes", &limit))
	p = s.run()
	s.delivered()
	s.stop(p)
	return code
}

func TestOnStopExitEndsAtARejection(t *testing.T) {
	parallel(t)
	sections := map[string]string{"kafka": rejectingSections["kafka"], "": "on_stop: exit\n"}
	s := newStand(t, options{topic: rejectingTopic, sections: sections})
	p := s.run()
	s.exec(`INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		VALUES ('order', 'one', 1, 'T', to_jsonb(repeat('x', 50000)))`)
	if code := s.exit(p); code != 4 {
		t.Errorf("exit %d, want 4", code)
	}
}

func TestRecordSizesAroundTheLimit(t *testing.T) {
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		t.Run(codec, func(t *testing.T) {
			parallel(t)
			sizesAroundTheLimit(t, codec)
		})
	}
}

// sizesAroundTheLimit: whatever the broker's arithmetic, a record passes or is
// reported, and nothing overtakes it.
func sizesAroundTheLimit(t *testing.T, codec string) {
	const limit = 10_000
	s := newStand(t, options{
		topic:    map[string]string{"max.message.bytes": fmt.Sprint(limit)},
		sections: map[string]string{"kafka": "  compression: " + codec + "\n", "": "shutdown_timeout: 1s\n"},
	})
	// bytea passes untouched, so that the size is what is written here. Random
	// bytes do not compress.
	s.exec("ALTER TABLE outbox ALTER payload TYPE bytea USING NULL")
	s.exec(`CREATE FUNCTION noise(n int) RETURNS bytea LANGUAGE sql AS $$
		SELECT substr(string_agg(decode(md5(random()::text), 'hex'), ''), 1, n) FROM generate_series(1, n / 16 + 1) $$`)
	p := s.run()
	s.exec(fmt.Sprintf(`INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
		SELECT 'order', 'one', n, 'T', noise(%d + n) FROM generate_series(-240, 64, 4) n`, limit))
	s.awaitLog(p, "rejected")
	report := s.judge(func(o *verify.Options) { o.Incomplete = true; o.Expect.Value = unhex })
	if !report.OK() || report.Records == 0 || report.Pending == 0 {
		t.Fatalf("while the first record over the limit stands still:\n%s", report.Table())
	}
	t.Logf("%s: largest value accepted with max.message.bytes = %d: %d bytes", codec, limit, limit-240+4*(report.Records-1))
	s.no(p.Signal(syscall.SIGTERM))
	s.exit(p)
	raised := "1000000"
	s.no(s.kafka.AlterTopicConfig(s.ctx, s.topic, "max.message.bytes", &raised))
	p = s.run()
	s.delivered()
	s.stop(p)
	s.check(func(o *verify.Options) { o.Expect.Value = unhex })
}

// unhex is what a bytea payload, which the oracle shows as hex text, must be in
// Kafka.
func unhex(r verify.Row) []byte {
	if r.Payload == nil {
		return nil
	}
	value, err := hex.DecodeString(strings.TrimPrefix(string(r.Payload), `\x`))
	if err != nil {
		return r.Payload
	}
	return value
}
