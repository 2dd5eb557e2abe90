package verify_test

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/cdcpub/cdcpub/internal/verify"
)

// A million rows with UUIDs over 12 partitions, delivered once. Run with
// -benchtime 1x; "held-B/row" is what the checker keeps beside the rows.
func BenchmarkCheckOfAMillionRows(b *testing.B) {
	const n = 1_000_000
	rows := history(n)
	for i := range rows {
		rows[i].EventID = fmt.Sprintf("018f4d2c-%04x-7000-8000-%012x", i%65536, i)
		rows[i].AggregateID = "order-" + strconv.Itoa(i%20_000)
	}
	opts := options()
	records := make([]verify.Record, n)
	ends := map[int32]int64{}
	for i, r := range rows {
		p := verify.PartitionOf([]byte(r.AggregateID), opts.Partitions[orderTopic])
		records[i] = record(r, p, ends[p])
		ends[p]++
	}
	before := heap()
	for b.Loop() {
		c := verify.NewChecker(rows, opts)
		for _, r := range records {
			c.Add(r)
		}
		if r := c.Report(); !r.OK() {
			b.Fatal(r.Table())
		}
		b.StopTimer()
		b.ReportMetric(float64(heap()-before)/n, "held-B/row")
		runtime.KeepAlive(c)
		b.StartTimer()
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
