package kafka

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pglogrepl"

	"github.com/cdcpub/cdcpub/internal/verify"
	"github.com/cdcpub/cdcpub/router"
	"github.com/cdcpub/cdcpub/wal"
)

// modelPostgres is a history of transactions and the slot that reads it.
type modelPostgres struct {
	events []wal.Event
	// ends has for each event the position behind which a session must stand to
	// not see it again.
	ends []pglogrepl.LSN
	rows []verify.Row
	// homes has the partition of each row.
	homes []int32

	// confirmed is confirmed_flush_lsn, stored what a crash leaves of it.
	confirmed, stored pglogrepl.LSN
	// holder has the slot, nil when it is free.
	holder *simulated
}

const simulatedTopic = "orders"

// simulatedTimeout is wal_sender_timeout.
const simulatedTimeout = time.Minute

var simulatedTable = &wal.Relation{ID: 7, Schema: "public", Name: "outbox"}

// simulatedKeys has keys for each partition count, so that every partition has
// some: the partition of key i of n partitions is i % n.
var simulatedKeys = func() [4][]string {
	var keys [4][]string
	for n := int32(1); n < 4; n++ {
		for want := int32(0); want < 2*n; want++ {
			for i := 100 * int(want); ; i++ {
				if key := strconv.Itoa(i); verify.PartitionOf([]byte(key), n) == want%n {
					keys[n] = append(keys[n], key)
					break
				}
			}
		}
	}
	return keys
}()

var simulatedEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// write makes the history.
func (m *modelPostgres) write(rng *rand.Rand, partitions int) {
	const first = pglogrepl.LSN(1000)
	m.confirmed, m.stored = first, first
	keys := simulatedKeys[partitions]
	lsn := first
	versions := make(map[string]int64)
	add := func(e wal.Event, end pglogrepl.LSN) {
		m.events = append(m.events, e)
		m.ends = append(m.ends, end)
	}
	for transaction := range 2 + rng.IntN(6) {
		count := rng.IntN(6)
		if rng.IntN(8) == 0 {
			count = 15
		}
		at := simulatedEpoch.Add(time.Duration(transaction) * time.Second)
		begin := lsn + 10
		commit := begin + 10*pglogrepl.LSN(count) + 10
		end := commit + 5
		add(wal.Event{Kind: wal.Begin, LSN: commit, CommitTime: at}, end)
		for i := range count {
			id := len(m.rows)
			key := keys[rng.IntN(len(keys))]
			versions[key]++
			value := binary.BigEndian.AppendUint32(nil, uint32(id))
			m.rows = append(m.rows, verify.Row{
				CommitEnd: end, CommitTime: at, EventID: strconv.Itoa(id), AggregateID: key, Version: versions[key], Payload: value,
			})
			m.homes = append(m.homes, verify.PartitionOf([]byte(key), int32(partitions)))
			add(wal.Event{Kind: wal.Insert, LSN: begin + 10*pglogrepl.LSN(i), Row: wal.Row{
				Relation: simulatedTable, Values: [][]byte{[]byte(strconv.Itoa(id)), []byte(key), value},
			}}, end)
		}
		add(wal.Event{Kind: wal.Commit, LSN: end, CommitTime: at}, end)
		lsn = end
		if rng.IntN(2) == 0 {
			lsn += 100
			add(wal.Event{Kind: wal.Keepalive, LSN: lsn}, lsn)
		}
	}
	// With a position behind everything it is told that all was delivered.
	add(wal.Event{Kind: wal.Keepalive, LSN: lsn + 100}, lsn+100)
}

// from is the index of the first event that a session sees.
func (m *modelPostgres) from(start pglogrepl.LSN) int {
	i := 0
	for i < len(m.ends) && m.ends[i] <= start {
		i++
	}
	return i
}

func (m *modelPostgres) last() pglogrepl.LSN { return m.ends[len(m.ends)-1] }

func simulatedRoute(commit time.Time, row wal.Row) (router.Record, error) {
	return router.Record{
		Topic: simulatedTopic, EventID: row.Values[0], Key: row.Values[1], Value: row.Values[2], Timestamp: commit,
		Headers: []router.Header{{Key: "id", Value: row.Values[0]}},
	}, nil
}

// simulatedExpectation says what the records must look like.
var simulatedExpectation = verify.Expectation{
	Topic:   func(verify.Row) string { return simulatedTopic },
	Headers: func(r verify.Row) []verify.Header { return []verify.Header{{Key: "id", Value: []byte(r.EventID)}} },
}
