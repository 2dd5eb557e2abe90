package bench

import (
	"fmt"
	"testing"
)

// load is what PostgreSQL is filled with, or how it is written to.
type load struct {
	Letter, Name string
	Transactions int // of Rows rows each
	Rows         int
	Payload      int // bytes of a long string in the payload, about
	Aggregates   int
	Topics       int
	Partitions   int // of each topic
	Rate         int // events per second of a steady load, 0 for a drain
	Seconds      int // of a steady load

	jvm, fake bool // measure Debezium, and cdcpub on a broker that does no work
	measure   func(*testing.B, *stand, load) []result
}

func (l load) rows() int { return l.Transactions * l.Rows }

// base is the drain that the others vary.
var base = load{Rows: 1000, Transactions: 1000, Payload: 200, Aggregates: 10_000, Topics: 1, Partitions: 12, measure: measureDrain}

// loadsOf are the loads behind a letter.
func loadsOf(letter string) []load {
	var loads []load
	add := func(name string, change func(*load)) {
		l := base
		l.Letter = letter
		change(&l)
		l.Transactions = scaled(l.Transactions)
		if l.Rate > 0 {
			l.Seconds = scaled(l.Seconds)
		}
		l.Name = name
		loads = append(loads, l)
	}
	switch letter {
	case "a":
		add("1,000,000 rows in transactions of 1,000", func(l *load) { l.jvm, l.fake = true, true })
	case "b":
		add("300,000 single-row transactions", func(l *load) { l.Transactions, l.Rows, l.jvm, l.fake = 300_000, 1, true, true })
	case "c":
		add("one transaction of 1,000,000 rows", func(l *load) { l.Transactions, l.Rows = 1, scaled(1_000_000) })
	case "d":
		for _, rate := range []int{1000, 5000} {
			add(fmt.Sprintf("steady %d events/s", rate), func(l *load) {
				l.Transactions, l.Rows, l.Rate, l.Seconds, l.jvm, l.measure = 1, 1, rate, 60, true, measureSteady
			})
		}
	case "e":
		add("payloads of 300 B", func(l *load) { l.Payload = 300 })
		add("payloads of 2 KiB", func(l *load) { l.Payload, l.Transactions = 2<<10, 300 })
		add("payloads of 64 KiB", func(l *load) { l.Payload, l.Transactions, l.Rows = 64<<10, 200, 100 })
	case "f":
		for _, n := range []int{1, 12, 200} {
			add(fmt.Sprintf("%d partitions", n), func(l *load) { l.Partitions = n })
		}
		add("one hot key", func(l *load) { l.Aggregates = 1 })
		for _, n := range []int{10, 100} {
			add(fmt.Sprintf("%d topics", n), func(l *load) { l.Topics, l.Partitions = n, 3 })
		}
	case "g":
		for _, n := range []int{10, 100, 1000, 10_000} {
			add(fmt.Sprintf("backlog of %d rows", n*1000), func(l *load) { l.Transactions = n })
		}
	}
	return loads
}
