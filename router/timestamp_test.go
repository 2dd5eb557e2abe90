package router_test

import (
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/router"
)

func createdAt(c *router.Config) { c.Columns.Timestamp = router.Named("created_at") }

func TestTimestampIsTheCommitTimeInMilliseconds(t *testing.T) {
	berlin := time.FixedZone("CET", 3600)
	for _, commit := range []time.Time{commitTime, commitTime.In(berlin), commitTime.Truncate(time.Millisecond)} {
		record, err := newRouter(t, defaults()).Route(commit, rowOf(orderCreated()))
		if err != nil || record.Timestamp != time.Date(2026, 11, 30, 8, 17, 40, 123e6, time.UTC) {
			t.Errorf("commit time %v gives %v, %v", commit, record.Timestamp, err)
		}
	}
}

func TestCommitTimeBefore1970IsUnpublishable(t *testing.T) {
	for _, commit := range []time.Time{{}, time.Unix(0, -1)} {
		if _, err := newRouter(t, defaults()).Route(commit, rowOf(orderCreated())); err == nil {
			t.Errorf("commit time %v is accepted", commit)
		}
	}
}

func TestTimestampColumnIsRead(t *testing.T) {
	for _, test := range []struct {
		oid  uint32
		text string
		want time.Time
	}{
		{timestamptzOID, "2026-11-30 08:17:40.123456+00", time.Date(2026, 11, 30, 8, 17, 40, 123e6, time.UTC)},
		{timestamptzOID, "2026-11-30 08:17:40+00", time.Date(2026, 11, 30, 8, 17, 40, 0, time.UTC)},
		{timestamptzOID, "2026-11-30 08:17:40.1+00", time.Date(2026, 11, 30, 8, 17, 40, 100e6, time.UTC)},
		{timestamptzOID, "2026-11-30 13:47:40.9999+05:30", time.Date(2026, 11, 30, 8, 17, 40, 999e6, time.UTC)},
		{timestamptzOID, "2026-11-30 05:17:10.5-03:00:30", time.Date(2026, 11, 30, 8, 17, 40, 500e6, time.UTC)},
		{timestampOID, "2026-11-30 08:17:40.123456", time.Date(2026, 11, 30, 8, 17, 40, 123e6, time.UTC)},
		{timestampOID, "2028-02-29 23:59:59.999999", time.Date(2028, 2, 29, 23, 59, 59, 999e6, time.UTC)},
		{timestamptzOID, "1970-01-01 00:00:00+00", time.Unix(0, 0).UTC()},
		{timestamptzOID, "10000-01-01 00:00:00+00", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
		{timestamptzOID, "294276-12-31 23:59:59.999999+00", time.Date(294276, 12, 31, 23, 59, 59, 999e6, time.UTC)},
	} {
		record := mustRoute(t, defaults(createdAt), with(orderCreated(), cell{"created_at", test.oid, []byte(test.text)}))
		if record.Timestamp != test.want {
			t.Errorf("%s gives %v, want %v", test.text, record.Timestamp, test.want)
		}
	}
}

func TestNullTimestampColumnMeansTheCommitTime(t *testing.T) {
	record := mustRoute(t, defaults(createdAt), with(orderCreated(), cell{"created_at", timestamptzOID, nil}))
	if record.Timestamp != commitTime.Truncate(time.Millisecond) {
		t.Errorf("got %v", record.Timestamp)
	}
}

func TestTimestampsThatKafkaCannotStoreAreUnpublishable(t *testing.T) {
	for text, word := range map[string]string{
		"infinity":                      "no instant",
		"-infinity":                     "no instant",
		"1969-12-31 23:59:59.999999+00": "before 1970",
		"1970-01-01 00:59:59+01":        "before 1970",
		"0044-03-15 00:00:00+00 BC":     "before 1970",
		"4714-11-24 00:00:00+00 BC":     "before 1970",
		"0001-02-29 00:00:00+00 BC":     "before 1970",
	} {
		wantError(t, defaults(createdAt), with(orderCreated(), cell{"created_at", timestamptzOID, []byte(text)}), "created_at", word, text)
	}
}

func TestTimestampTextThatIsNotISOIsUnpublishable(t *testing.T) {
	for _, text := range []string{
		"", "now", "1796026660123", "2026-11-30", "2026-11-30T08:17:40+00", "Mon Nov 30 08:17:40 2026 UTC", "30/11/2026 08:17:40+00",
		"2026-11-30 08:17:40", "2026-11-30 08:17:40 UTC", "2026-11-30 08:17:40+00x", "2026-11-30 08:17:40.+00", "2026-11-30 08:17:40+0",
		"2026-13-01 00:00:00+00", "2026-00-01 00:00:00+00", "2026-02-29 00:00:00+00", "2026-11-00 00:00:00+00", "2026-11-32 00:00:00+00",
		"2026-11-30 24:00:00+00", "2026-11-30 08:60:00+00", "2026-11-30 08:17:60+00", "0000-01-01 00:00:00+00", "2026-11-30 08:17:40.1234567+00",
		"99999999999999999999-01-01 00:00:00+00", "-2026-11-30 08:17:40+00", "2026-11-30 08:17:40+00:", " BC", "2026-11-30 08:17:40+00 BCE",
	} {
		wantError(t, defaults(createdAt), with(orderCreated(), cell{"created_at", timestamptzOID, []byte(text)}), "created_at", "ISO")
	}
	wantError(t, defaults(createdAt), with(orderCreated(), cell{"created_at", timestampOID, []byte("2026-11-30 08:17:40+00")}), "created_at", "ISO")
}

func TestTimestampColumnOfAnotherTypeIsRefused(t *testing.T) {
	wantError(t, defaults(createdAt), with(orderCreated(), cell{"created_at", int8OID, []byte("1796026660123")}), "created_at", "type OID 20")
}
