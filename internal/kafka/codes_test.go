package kafka

import (
	"errors"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// produce selects produce requests for a kfake.Fault.
var produceKey = []kmsg.Key{kmsg.Produce}

func TestTableHasEveryCodeExactlyOnce(t *testing.T) {
	seen := make(map[sarama.KError]bool)
	for _, r := range rules {
		if seen[r.code] {
			t.Errorf("code %d is there twice", r.code)
		}
		seen[r.code] = true
		if r.class < classRetry || r.class > classDuplicate {
			t.Errorf("code %d has class %d", r.code, r.class)
		}
		if r.reason == "" {
			t.Errorf("code %d has no reason", r.code)
		}
		if known, ok := kerr.ErrorForCode(int16(r.code)).(*kerr.Error); ok && known.Message != r.name && r.code != sarama.ErrNotLeaderForPartition {
			t.Errorf("code %d is %s, not %s", r.code, known.Message, r.name)
		}
	}
	for code := sarama.KError(-1); code <= 136; code++ {
		if code != sarama.ErrNoError && !seen[code] {
			t.Errorf("code %d has no rule", code)
		}
	}
	// A code that sarama or franz-go learns must be added here first.
	for code := int16(137); code < 300; code++ {
		if known := kerr.ErrorForCode(code); known != kerr.UnknownServerError {
			t.Errorf("code %d (%v) has no rule", code, known)
		}
	}
}

func TestUnknownCodeIsRetriedAsUnsure(t *testing.T) {
	for _, code := range []sarama.KError{-2, 137, 9999} {
		if r := classify(code); r.class != classRetry || !r.unsure {
			t.Errorf("code %d: %+v", code, r)
		}
	}
}

func TestNoCodeLosesRepeatsOrReordersARecord(t *testing.T) {
	for _, r := range rules {
		if r.class == classFenced {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
			s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
			s.Send(s.numbered("orders", 100, oneKey))
			s.acks(100)
			fault := c.Fault(kfake.Fault{Keys: produceKey, Err: kerrOf(r)})
			for range 9 {
				s.Send(s.numbered("orders", 100, oneKey))
			}
			if err := fault.Wait(patiently(t), 1); err != nil {
				t.Fatal(err)
			}
			if r.class == classDuplicate {
				// This answer is a lie of the fault: the batch is not there.
				return
			}
			s.acks(1000)
			requireExactly(t, c, "orders", 1000)
		})
	}
}

func kerrOf(r rule) *kerr.Error {
	if known, ok := kerr.ErrorForCode(int16(r.code)).(*kerr.Error); ok {
		return known
	}
	return &kerr.Error{Message: r.name, Code: int16(r.code)}
}

func TestFencedEndsTheProducer(t *testing.T) {
	for _, code := range []sarama.KError{sarama.ErrProducerFenced, sarama.ErrTransactionalIDAuthorizationFailed, 105} {
		t.Run(classify(code).name, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
			s := startSession(t, newTestClient(t, fastConfig(c.ListenAddrs()...)), always)
			c.Fault(kfake.Fault{Keys: produceKey, Err: kerrOf(classify(code))})
			s.Send(s.numbered("orders", 10, oneKey))
			err := s.fails()
			var stop *StopError
			if !errors.As(err, &stop) || !stop.Stopped() {
				t.Fatalf("error is %v", err)
			}
			s.Send(s.numbered("orders", 10, oneKey))
			s.stop(patience)
			requireExactly(t, c, "orders", 0)
		})
	}
}
