package badinput

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cdcpub/cdcpub/test/harness"
)

// brokers are mistakes on the way to Kafka.
var brokers = []mistake{
	{name: "nobody listens", config: with("KAFKA:9092", "CLOSED"), code: stays, names: []string{"kafka.brokers", "refuses"}},
	{name: "no such host", config: with("KAFKA:9092", "kafka.invalid:9092"), code: stays, names: []string{"kafka.invalid"}},
	{name: "not Kafka at that port", config: with("KAFKA:9092", "POSTGRES"), code: stays, names: []string{"kafka"}},
	{name: "an HTTP server at that port", config: with("KAFKA:9092", "WEB"), code: stays, names: []string{"HTTP", "kafka.brokers"}, first: func(s *stand) {
		s.replace = append([]string{"WEB", stranger(s, badRequest)}, s.replace...)
	}},
	{name: "nobody listens, check", args: checking, config: with("KAFKA:9092", "CLOSED"), code: 3, names: []string{"kafka.reachable", "kafka.brokers"}},
	{name: "TLS wanted and not there", event: "kafka_unreachable", config: with("kafka:\n", "kafka:\n  tls: {enabled: true}\n"), code: stays, names: []string{"kafka.brokers"}},
	{name: "no topic", code: stays, names: []string{"outbox.event.invoice"}, first: func(s *stand) {
		s.insert("aggregate_type, aggregate_id, payload", "'invoice', '1', '{}'")
	}},
	{name: "a record larger than the topic allows", longest: rowsLongest, code: stays, names: []string{"outbox.event.order", "limit", "max.message.bytes"}, first: func(s *stand) {
		s.kafka.ControlKey(int16(kmsg.Produce), tooLarge)
		s.insert("aggregate_type, aggregate_id, payload", "'order', '1', to_jsonb(repeat('x', 2000000))")
	}},
}

// tooLarge refuses every batch as a broker does that is over
// max.message.bytes; kfake itself takes any size.
func tooLarge(request kmsg.Request) (kmsg.Response, error, bool) {
	produce := request.(*kmsg.ProduceRequest)
	answer := produce.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range produce.Topics {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic, topic.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.Partition, partition.ErrorCode = p.Partition, kerr.MessageTooLarge.Code
			topic.Partitions = append(topic.Partitions, partition)
		}
		answer.Topics = append(answer.Topics, topic)
	}
	return answer, nil, true
}

// machine are mistakes on the machine of cdcpub.
var machine = []mistake{
	{name: "the HTTP port is in use", code: 1, names: []string{"http.listen"}, first: func(s *stand) {
		s.replace = append([]string{`"off"`, occupy(s.t).Addr().String()}, s.replace...)
	}},
	{name: "run a second time", code: stays, event: "standby", names: []string{"slot cdcpub_db", "standby"}, first: func(s *stand) {
		first := harness.StartProcess(s.t, harness.ProcessOptions{
			Binary: shared.Binary(s.t, harness.BuildOptions{}), Args: []string{"run"}, Config: s.fill(usual),
		})
		ctx, cancel := context.WithTimeout(s.ctx, 30*time.Second)
		defer cancel()
		if _, err := first.WaitForLog(ctx, "resumed"); err != nil {
			s.t.Fatal(err)
		}
	}},
}
