package verify_test

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/verify"
)

func TestPartitionIsTheOneOfTheJavaClient(t *testing.T) {
	// murmur2 of Apache Kafka's UtilsTest and of the Java client itself. Over
	// 1<<31-1 partitions the partition is the hash without its sign.
	hashes := map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc":                 479470107,
		"42":                  417700972,
		"1":                   -1993445489,
		"ord-1":               -1693078832,
		`"ord-1"`:             564305232,
		"9223372036854775807": -1221667907,
	}
	for key, hash := range hashes {
		for _, partitions := range []int32{1, 3, 6, 12, 50, 1<<31 - 1} {
			want := hash & 0x7fffffff % partitions
			if got := verify.PartitionOf([]byte(key), partitions); got != want {
				t.Errorf("%q of %d partitions: got %d, want %d", key, partitions, got, want)
			}
		}
	}
	if got := verify.PartitionOf(nil, 12); got != 9 {
		t.Errorf("the empty key: got %d, want 9", got)
	}
}

func TestDefaultHeaders(t *testing.T) {
	text := func(s string) *string { return &s }
	row := verify.Row{EventID: "e1", Version: 7, EventType: "Placed"}
	const always = `id="e1" aggregateVersion="7" eventType="Placed"`
	cases := map[string]struct {
		columns map[string]*string
		want    string
	}{
		"without columns":         {nil, always},
		"columns of no interest":  {map[string]*string{"payload": text("x")}, always},
		"schema version":          {map[string]*string{"schema_version": text("3")}, always + ` schemaVersion="3"`},
		"NULL schema version":     {map[string]*string{"schema_version": nil}, always},
		"NULL version and type":   {map[string]*string{"aggregate_version": nil, "event_type": nil}, `id="e1" aggregateVersion=null eventType=null`},
		"NULL headers":            {map[string]*string{"headers": nil}, always},
		"headers of every type":   {map[string]*string{"headers": text(`{"z": "\u00e9\n", "a": 1.50, "b": true, "n": null, "o": {"k": [1, 2]}, "e": ""}`)}, always + ` z="é\n" a="1.50" b="true" n=null o="{\"k\": [1, 2]}" e=""`},
		"schema version first":    {map[string]*string{"headers": text(`{"a": "b"}`), "schema_version": text("3")}, always + ` schemaVersion="3" a="b"`},
		"headers are an array":    {map[string]*string{"headers": text(`["a"]`)}, always},
		"headers are a scalar":    {map[string]*string{"headers": text(`"a"`)}, always},
		"headers are no JSON":     {map[string]*string{"headers": text(`{"a": "b"`)}, always},
		"headers break at a name": {map[string]*string{"headers": text(`{"a": "b", 1`)}, always},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			r := row
			r.Columns = c.columns
			if got := render(verify.DefaultHeaders(r)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func render(headers []verify.Header) string {
	s := ""
	for n, h := range headers {
		if n > 0 {
			s += " "
		}
		if h.Value == nil {
			s += h.Key + "=null"
		} else {
			s += fmt.Sprintf("%s=%q", h.Key, h.Value)
		}
	}
	return s
}

func TestExpectationReplacesEveryDefault(t *testing.T) {
	rows := history(2)
	opts := verify.Options{
		Partitions:    map[string]int32{"all": 8},
		EventIDHeader: "event_id",
		Expect: verify.Expectation{
			Topic: func(verify.Row) string { return "all" },
			Key:   func(r verify.Row) []byte { return []byte(r.EventID) },
			Value: func(verify.Row) []byte { return []byte("v") },
			Headers: func(r verify.Row) []verify.Header {
				return []verify.Header{{Key: "event_id", Value: []byte(r.EventID)}}
			},
			Timestamp: func(verify.Row) time.Time { return time.UnixMilli(5) },
			Partition: func(key []byte, n int32) int32 { return int32(key[1]-'0') % n },
		},
	}
	var records []verify.Record
	for i, r := range rows {
		records = append(records, verify.Record{
			Topic: "all", Partition: int32(i + 1), Key: []byte(r.EventID), Value: []byte("v"),
			Headers: []verify.Header{{Key: "event_id", Value: []byte(r.EventID)}}, Timestamp: time.UnixMilli(5),
		})
	}
	if r := verify.Check(rows, records, opts); !r.OK() || r.Partitions != 2 {
		t.Error(r.Table())
	}
}

// The hash of random keys never leaves the range of the partitions.
func FuzzPartitionOf(f *testing.F) {
	f.Add([]byte("42"), int32(12))
	f.Add(binary.LittleEndian.AppendUint64(nil, 1<<63), int32(1))
	f.Fuzz(func(t *testing.T, key []byte, partitions int32) {
		if partitions <= 0 {
			return
		}
		if p := verify.PartitionOf(key, partitions); p < 0 || p >= partitions {
			t.Errorf("partition %d of %d", p, partitions)
		}
	})
}
