package kafka

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// Two of three brokers take requests for metadata and do not answer. Whichever
// is asked first, the third is asked long before a produce request would be
// given up.
func TestABrokerThatHangsDoesNotHoldUpWhatAnotherCanTell(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(3, "orders"))
	c.ControlKey(int16(kmsg.Metadata), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, nil, c.CurrentNode() != 2
	})
	config := fastConfig(c.ListenAddrs()...)
	config.RequestTimeout = time.Hour
	for range 5 {
		s := startSession(t, newTestClient(t, config), always)
		s.Send(s.numbered("orders", 10, manyKeys(10)))
		s.acks(10)
		s.stop(patience)
	}
}

// A batch without an answer is a stall long before it is given up, with the
// broker's name; and then it is one of another kind.
func TestABrokerThatDoesNotAnswerABatchIsNamed(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, nil, true
	})
	config := fastConfig(c.ListenAddrs()...)
	config.RequestTimeout = 2 * time.Second
	s := startSession(t, newTestClient(t, config), always)
	sent := time.Now()
	s.Send(s.numbered("orders", 1, oneKey))
	for _, text := range []string{"broker " + c.ListenAddrs()[0] + " has not answered yet", "broker " + c.ListenAddrs()[0] + " has not answered in time"} {
		s.stalls(text, func(p pipeline.PartitionStatus) bool {
			return strings.Contains(p.Stall, text) && !p.StallSince.Before(sent)
		})
	}
	s.stop(0)
}

// What takes connections and says nothing is given up soon, and named.
func TestAnAddressThatAcceptsAndIsSilentIsGivenUpSoon(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	config := fastConfig(listener.Addr().String())
	config.RequestTimeout = time.Hour
	s := startSession(t, newTestClient(t, config), always)
	s.Send(s.numbered("orders", 1, oneKey))
	s.stalls("silent", func(p pipeline.PartitionStatus) bool {
		return strings.Contains(p.Stall, "takes the connection but does not answer in time")
	})
	s.stop(0)
}
