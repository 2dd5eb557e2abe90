package harness_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cdcpub/cdcpub/test/harness"
)

// fakeWith is a fake with one topic of one partition, and a producer that tries
// once and tells the code that it was answered.
func fakeWith(t *testing.T) (*harness.FakeKafka, func(value string) (code int16)) {
	t.Helper()
	k := harness.NewFakeKafka(t, 1)
	must(t, k.CreateTopic(limit(t), "orders", 1, 1, nil))
	c := client(t, k.Brokers(), kgo.DisableIdempotentWrite(), kgo.RecordRetries(0), kgo.DefaultProduceTopic("orders"))
	return k, func(value string) int16 {
		t.Helper()
		err := c.ProduceSync(limit(t), kgo.StringRecord(value)).FirstErr()
		if err == nil {
			return 0
		}
		known, ok := errors.AsType[*kerr.Error](err)
		if !ok {
			t.Fatal(err)
		}
		return known.Code
	}
}

func appended(t *testing.T, k *harness.FakeKafka) []string {
	t.Helper()
	records, err := harness.ReadAll(limit(t), k.Direct(), "orders")
	must(t, err)
	return values(records, 0)
}

func TestFakeRefusesInTurnAndAppendsNothing(t *testing.T) {
	k, ask := fakeWith(t)
	end := k.Refuse("orders", 1, 2, []int16{kerr.NotLeaderForPartition.Code, kerr.KafkaStorageError.Code})
	var codes []int16
	for _, value := range []string{"a", "b", "c", "d", "e", "f"} {
		codes = append(codes, ask(value))
	}
	if want := []int16{0, kerr.NotLeaderForPartition.Code, 0, kerr.KafkaStorageError.Code, 0, 0}; !slices.Equal(codes, want) {
		t.Errorf("codes %d, want %d", codes, want)
	}
	if n := end(); n != 2 {
		t.Errorf("%d answers", n)
	}
	if got := appended(t, k); !slices.Equal(got, []string{"a", "c", "e", "f"}) {
		t.Errorf("appended %q", got)
	}
}

func TestFakeRefusesWithOneCodeUntilItsEnd(t *testing.T) {
	k, ask := fakeWith(t)
	end := k.Refuse("orders", 1, 1, []int16{kerr.InvalidRecord.Code})
	for range 3 {
		if code := ask("a"); code != kerr.InvalidRecord.Code {
			t.Errorf("code %d", code)
		}
	}
	end()
	if code := ask("b"); code != 0 {
		t.Errorf("code %d", code)
	}
	if got := appended(t, k); !slices.Equal(got, []string{"b"}) {
		t.Errorf("appended %q", got)
	}
}

func TestFakeAppendsAndRefuses(t *testing.T) {
	k, ask := fakeWith(t)
	end := k.AppendAndRefuse(2, []int16{kerr.KafkaStorageError.Code})
	for i, want := range []int16{0, kerr.KafkaStorageError.Code, 0} {
		if code := ask(string(rune('a' + i))); code != want {
			t.Errorf("answer %d: code %d, want %d", i, code, want)
		}
	}
	if n := end(); n != 1 {
		t.Errorf("%d answers", n)
	}
	if code := ask("d"); code != 0 {
		t.Errorf("code %d", code)
	}
	if got := appended(t, k); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("appended %q", got)
	}
}

func TestFakeAcknowledgesLate(t *testing.T) {
	k, ask := fakeWith(t)
	const late = 200 * time.Millisecond
	end := k.Slow(1, late, late)
	began := time.Now()
	if code := ask("a"); code != 0 {
		t.Errorf("code %d", code)
	}
	if took := time.Since(began); took < late {
		t.Errorf("acknowledged after %v", took)
	}
	if n := end(); n != 1 {
		t.Errorf("%d answers", n)
	}
	// What is held back is let go at the end.
	end = k.Slow(1, time.Hour, time.Hour)
	done := make(chan int16, 1)
	go func() { done <- ask("b") }()
	for len(appended(t, k)) < 2 { // the reader's requests pace it
	}
	end()
	if code := <-done; code != 0 {
		t.Errorf("code %d", code)
	}
}
