package metrics

import (
	"math"

	"github.com/cdcpub/cdcpub/internal/monitor"
)

type serverFamilies struct{ up, lastSample, wal, maxKeep, volumeFree, volumeSize *family }

func newServerFamilies(c *collector) serverFamilies {
	return serverFamilies{
		up: c.gauge("server_up",
			"1 if the last try to sample the server's slots succeeded, else 0. While it is 0 the metrics of its slots are those of the last sample, and the times until something happens are absent.", "server"),
		lastSample: c.gauge("server_last_sample_timestamp_seconds",
			"When the last sample that succeeded was taken, by the clock of this host. Absent before the first one.", "server"),
		wal: c.counter("server_wal_bytes_total",
			"The server's end of WAL as a byte position: its rate is how fast WAL is written. Absent before the first sample.", "server"),
		maxKeep: c.gauge("server_max_slot_wal_keep_size_bytes",
			"max_slot_wal_keep_size of the server, +Inf for no limit (-1). Absent before the first sample.", "server"),
		volumeFree: c.gauge("volume_free_bytes",
			"Free bytes of the volume that holds pg_wal. Absent when they are not known: see slot_monitor.volume.", "server"),
		volumeSize: c.gauge("volume_size_bytes",
			"Size of the volume that holds pg_wal. Absent when it is not known.", "server"),
	}
}

func (f *serverFamilies) collect(s *scrape, server *monitor.Server) {
	s.put(f.up, truth(server.Up), server.Name)
	if server.Sample == nil {
		return
	}
	said := &server.Sample.Server
	s.at(f.lastSample, server.Sample.Taken, server.Name)
	s.put(f.wal, float64(said.WAL), server.Name)
	keep := math.Inf(1)
	if said.MaxSlotWALKeepSize >= 0 {
		keep = float64(said.MaxSlotWALKeepSize)
	}
	s.put(f.maxKeep, keep, server.Name)
	s.put(f.volumeFree, number(said.Volume.FreeBytes), server.Name)
	s.put(f.volumeSize, number(said.Volume.SizeBytes), server.Name)
}

// number is NaN, which put leaves out, for what is not known.
func number[N int64 | float64](n *N) float64 {
	if n == nil {
		return math.NaN()
	}
	return float64(*n)
}
