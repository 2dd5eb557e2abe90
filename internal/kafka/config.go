package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/IBM/sarama"
)

// Config says how to reach the cluster and how to produce. The zero value of a
// field is its default, which SetDefaults fills in.
type Config struct {
	// Brokers are the addresses (host:port) to start from. Required.
	Brokers []string
	// ClientID names us in the brokers' logs and quotas. Default "cdcpub".
	ClientID string
	// TLS, when set, is asked for each connection, so that changed files
	// count. ServerName is filled in per broker when empty. It must be safe for
	// concurrent use.
	TLS func() (*tls.Config, error)
	// SASL, when set, authenticates every connection.
	SASL *SASL

	// Compression is none, gzip, snappy, lz4 or zstd. Default lz4.
	Compression string
	// Linger is how long a partition with less than BatchBytes waits for more
	// records. Default 0: whatever is queued goes as soon as it may.
	Linger time.Duration
	// BatchBytes bounds one partition's batch, before compression. A larger
	// record goes alone. Default 512 KiB.
	BatchBytes int
	// MaxInFlightPerBroker bounds the requests without answer per broker. A
	// partition never has more than one. Default 5.
	MaxInFlightPerBroker int

	// RequestTimeout is how long the leader may wait for the in-sync
	// replicas. We wait half as long again for its answer, so that its own
	// verdict comes first. Default 8 s.
	RequestTimeout time.Duration
	// DialTimeout bounds the TCP connect, and then the TLS handshake. The first
	// requests, for versions and SASL, have twice as long. Default 5 s.
	DialTimeout time.Duration
	// RedialInterval is how long a connection may take before another one is tried
	// beside it, and again after that; it goes on trying itself. Default 3 s.
	RedialInterval time.Duration

	// BackoffMin and BackoffMax bound the pause before a retry, which doubles
	// from one to the other. Defaults 50 ms and 1 s.
	BackoffMin, BackoffMax time.Duration
	// OperatorBackoffMax bounds the pause when only a human can cure the
	// cause. Default 10 s.
	OperatorBackoffMax time.Duration
	// RejectedInterval is the pause before a rejected record is tried again.
	// Default 1 min.
	RejectedInterval time.Duration
	// FenceGrace is how long records wait for the transaction coordinator while
	// brokers answer. Then they go without a fence, which is not worth a
	// standstill, and the coordinator is asked on. Default 10 s.
	FenceGrace time.Duration
	// TopicCheckInterval is how often the topics' ids and partition counts
	// are compared. Default 15 s.
	TopicCheckInterval time.Duration

	// Dial replaces the plain TCP dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// codecs has the legal values of Config.Compression.
var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

// SetDefaults fills in the fields that are zero.
func (c *Config) SetDefaults() {
	setDefault(&c.ClientID, "cdcpub")
	setDefault(&c.Compression, "lz4")
	setDefault(&c.BatchBytes, 512<<10)
	setDefault(&c.MaxInFlightPerBroker, 5)
	setDefault(&c.RequestTimeout, 8*time.Second)
	setDefault(&c.DialTimeout, 5*time.Second)
	setDefault(&c.RedialInterval, 3*time.Second)
	setDefault(&c.BackoffMin, 50*time.Millisecond)
	setDefault(&c.BackoffMax, max(time.Second, c.BackoffMin))
	setDefault(&c.OperatorBackoffMax, max(10*time.Second, c.BackoffMax))
	setDefault(&c.RejectedInterval, time.Minute)
	setDefault(&c.FenceGrace, fenceGrace)
	setDefault(&c.TopicCheckInterval, 15*time.Second)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{KeepAlive: 15 * time.Second}).DialContext
	}
	if c.SASL != nil && c.SASL.Mechanism == "" {
		sasl := *c.SASL
		sasl.Mechanism = MechanismPlain
		c.SASL = &sasl
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate returns all problems of a Config with its defaults set, joined.
func (c *Config) Validate() error {
	var problems []error
	bad := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("kafka: "+format, args...))
	}
	if len(c.Brokers) == 0 {
		bad("brokers: at least one address is needed")
	}
	for _, address := range c.Brokers {
		if _, port, err := net.SplitHostPort(address); err != nil || port == "" {
			bad("brokers: %q is not host:port", address)
		}
	}
	if _, ok := codecs[c.Compression]; !ok {
		bad("compression: %q is none of none, gzip, snappy, lz4, zstd", c.Compression)
	}
	if c.Linger < 0 || c.Linger > time.Minute {
		bad("linger: %v is not between 0 and 1m", c.Linger)
	}
	if c.BatchBytes < 1 || c.BatchBytes > maxRequestBytes {
		bad("batch_bytes: %d is not between 1 and %d", c.BatchBytes, maxRequestBytes)
	}
	if c.MaxInFlightPerBroker < 1 || c.MaxInFlightPerBroker > 100 {
		bad("max_in_flight_per_broker: %d is not between 1 and 100", c.MaxInFlightPerBroker)
	}
	atLeastOneMilli := func(name string, d time.Duration) {
		if d < time.Millisecond {
			bad("%s: %v is less than 1ms", name, d)
		}
	}
	atLeastOneMilli("request_timeout", c.RequestTimeout)
	atLeastOneMilli("dial_timeout", c.DialTimeout)
	atLeastOneMilli("redial_interval", c.RedialInterval)
	atLeastOneMilli("backoff_min", c.BackoffMin)
	atLeastOneMilli("rejected_interval", c.RejectedInterval)
	atLeastOneMilli("fence_grace", c.FenceGrace)
	atLeastOneMilli("topic_check_interval", c.TopicCheckInterval)
	if c.BackoffMax < c.BackoffMin {
		bad("backoff_max: %v is less than backoff_min %v", c.BackoffMax, c.BackoffMin)
	}
	if c.OperatorBackoffMax < c.BackoffMax {
		bad("operator_backoff_max: %v is less than backoff_max %v", c.OperatorBackoffMax, c.BackoffMax)
	}
	if c.SASL != nil {
		problems = append(problems, c.SASL.problems()...)
	}
	return errors.Join(problems...)
}
