package bench

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/test/harness"
)

// measureDrain lets the subjects drain the same backlog, in turn.
func measureDrain(b *testing.B, s *stand, l load) []result {
	subjects := []string{reference, cdcpub}
	if *earlier != "" {
		subjects = append(subjects, cdcpubBefore)
	}
	if l.fake {
		subjects = append(subjects, cdcpubFake)
	}
	if l.jvm && *withJVM {
		subjects = append(subjects, debeziumCold, debeziumWarm)
	}
	subjects = chosen(subjects)
	var slots []string
	for round := range *rounds {
		for i := range subjects {
			slots = append(slots, slotOf(l, round, i))
		}
	}
	k := s.newBacklog(b, l, slots)
	defer k.release(b)
	var results []result
	for round := range *rounds {
		var jvm *connect
		for i, subject := range subjects {
			d := &drain{stand: s, backlog: k, place: place{slotOf(l, round, i), topics{fmt.Sprintf("bench.%s", slotOf(l, round, i)), l.Topics, l.Partitions}}}
			r := d.measure(b, subject, &jvm)
			r.Load, r.Subject, r.Round, r.Rows, r.Payload = l.Name, subject, round, l.rows(), l.Payload
			results = append(results, r)
			b.Log(r)
		}
		if jvm != nil {
			jvm.stop(b)
		}
	}
	return results
}

// slotOf names the slot of a subject in a round. Loads of one letter have
// databases of their own, but slots have names in the whole cluster.
func slotOf(l load, round, subject int) string {
	return fmt.Sprintf("%s_%d_%d", l.Letter, round, subject)
}

// drain is one measurement.
type drain struct {
	*stand
	*backlog
	place
}

func (d *drain) measure(b *testing.B, subject string, jvm **connect) result {
	if subject == reference {
		return d.toNowhere(b)
	}
	o, broker, brokerPID, ours := d.offsets, d.kafka.Brokers()[0], d.kafka.PID(0), d.binary
	switch subject {
	case cdcpubBefore:
		ours = *earlier
	case cdcpubFake:
		fake := startFake(b)
		o, broker, brokerPID = newOffsets(b, fake.address), fake.address, fake.PID()
		defer fake.stop(b)
	}
	o.create(b, d.topics)
	defer o.remove(b, d.topics)
	served, sender := cpuOf(brokerPID), followWalsender(b, d.url, d.slot)
	var began time.Time
	var used time.Duration
	var r running
	switch subject {
	case debeziumCold:
		began = time.Now()
		*jvm = d.startConnect(b, d.backlog, d.place, false)
		r = *jvm
	case debeziumWarm:
		settings := d.connector(b, d.backlog, d.place, false)
		used = cpuOf((*jvm).pid())
		began = time.Now()
		(*jvm).again(b, settings)
		r = *jvm
	default:
		began = time.Now()
		r = d.startCDCPub(b, d.backlog, d.place, ours, broker)
	}
	first, last := o.arrivals(b, d.topics, d.load.rows(), r.failed)
	m := result{
		First: first.Sub(began).Seconds(), Seconds: last.Sub(began).Seconds(),
		Subjects: (cpuOf(r.pid()) - used).Seconds(), Broker: (cpuOf(brokerPID) - served).Seconds(),
		PeakRSS: peakOf(r.pid()), Allocations: r.allocations(),
	}
	m.Walsender = sender.end().Seconds()
	if subject != debeziumCold && subject != debeziumWarm {
		d.confirmed(b)
		r.stop(b)
	}
	return m
}

// toNowhere measures pg_recvlogical, which ends by itself.
func (d *drain) toNowhere(b *testing.B) result {
	sender := followWalsender(b, d.url, d.slot)
	began := time.Now()
	p := d.startReference(b, d.backlog, d.place).(process)
	if code, err := p.Wait(b.Context()); code != 0 || err != nil {
		b.Fatalf("pg_recvlogical: exit %d %v\n%s", code, err, p.Stderr())
	}
	took := time.Since(began)
	return result{Seconds: took.Seconds(), Subjects: p.CPU().Seconds(), Walsender: sender.end().Seconds(), PeakRSS: p.VmHWM()}
}

// confirmed waits until the slot says that everything is published.
func (d *drain) confirmed(b *testing.B) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	for {
		lsn, err := harness.ConfirmedFlushLSN(ctx, d.url, d.slot)
		if err != nil {
			b.Fatal(err)
		}
		if lsn >= d.end {
			return
		}
	}
}

// metric reads one value of a Prometheus page, 0 if it is not there.
func metric(address, name string) uint64 {
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			f, _ := strconv.ParseFloat(value, 64)
			return uint64(f)
		}
	}
	return 0
}
