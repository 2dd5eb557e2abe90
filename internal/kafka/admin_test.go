package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// says asserts that a text has all the parts.
func says(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}

func describe(t *testing.T, config Config, topics ...string) *Cluster {
	t.Helper()
	cluster, err := newTestClient(t, config).Describe(patiently(t), topics)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

// serve answers every connection with f.
func serve(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f(conn)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-ended
	})
	return l.Addr().String()
}

// answer reads something and answers with text.
func answer(text string) func(net.Conn) {
	return func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096))
		_, _ = io.WriteString(conn, text)
	}
}

func TestBootstrapAddressesThatAreNoBroker(t *testing.T) {
	cert, pool := certificate(t)
	secure := startCluster(t, kfake.NumBrokers(1), kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}}))
	open := startCluster(t, kfake.NumBrokers(1))
	trusted := &tls.Config{RootCAs: pool}
	for name, test := range map[string]struct {
		address string
		tls     *tls.Config
		says    string
	}{
		"a web server":            {serve(t, answer("HTTP/1.1 400 Bad Request\r\n\r\n")), nil, "is an HTTP server"},
		"PostgreSQL":              {serve(t, answer("E\x00\x00\x00\x90SFATAL\x00VFATAL\x00C0A000\x00")), nil, "does not speak the Kafka protocol"},
		"a length below any":      {serve(t, answer("\x00\x00\x00\x02\x00\x00\x00\x00")), nil, "does not speak the Kafka protocol"},
		"a TLS alert":             {serve(t, answer("\x15\x03\x03\x00\x02\x02\x46\x00")), nil, "speaks TLS, and kafka.tls is not configured"},
		"who hangs up":            {serve(t, func(net.Conn) {}), nil, "closes the connection"},
		"who never answers":       {serve(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), nil, "does not answer in time"},
		"TLS to a plain listener": {open.ListenAddrs()[0], trusted, "TLS"},
		"plain to a TLS listener": {secure.ListenAddrs()[0], nil, "TLS"},
		"unknown authority":       {secure.ListenAddrs()[0], &tls.Config{RootCAs: x509.NewCertPool()}, "certificate"},
		"no such name":            {"kafka.invalid:9092", nil, "the name kafka.invalid "},
	} {
		t.Run(name, func(t *testing.T) {
			config := fastConfig(test.address)
			if test.tls != nil {
				config.TLS = func() (*tls.Config, error) { return test.tls, nil }
			}
			cluster, err := newTestClient(t, config).Describe(patiently(t), []string{"orders"})
			if err == nil {
				t.Fatalf("described %+v", cluster)
			}
			if got := cluster.BootstrapUnreachable; len(got) != 1 {
				t.Fatalf("unreachable %v", got)
			}
			text := cluster.BootstrapUnreachable[test.address]
			says(t, text, test.says, test.address[:strings.LastIndex(test.address, ":")])
			says(t, err.Error(), text)
			if strings.Contains(text, "\n") {
				t.Errorf("more than one line: %q", text)
			}
		})
	}
}

func TestDescribeWithTLSAndSASL(t *testing.T) {
	cert, pool := certificate(t)
	c := startCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(4, "orders"),
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}}), kfake.EnableSASL(), kfake.Superuser("PLAIN", "us", "hush"))
	config := fastConfig(c.ListenAddrs()...)
	config.TLS = func() (*tls.Config, error) { return &tls.Config{RootCAs: pool}, nil }
	config.SASL = &SASL{User: "us", Password: func() (string, error) { return "hush", nil }}
	cluster := describe(t, config, "orders")
	if len(cluster.Brokers) != 2 || cluster.Brokers[0].Unreachable+cluster.Brokers[1].Unreachable != "" || cluster.Topics[0].Partitions != 4 {
		t.Errorf("cluster %+v", cluster)
	}
}

// through dials other addresses than it was told, like a network whose names
// lead elsewhere.
func through(elsewhere map[string]string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if to, ok := elsewhere[address]; ok {
			address = to
		}
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

func TestAdvertisedAddressesThatLeadElsewhere(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(3), kfake.ClusterID("ours"))
	other := startCluster(t, kfake.NumBrokers(1), kfake.ClusterID("theirs"))
	b := c.ListenAddrs()
	config := fastConfig(b[0])
	config.Dial = through(map[string]string{b[1]: other.ListenAddrs()[0], b[2]: b[0]})
	cluster := describe(t, config)
	if cluster.Brokers[0].Unreachable != "" {
		t.Errorf("broker %+v", cluster.Brokers[0])
	}
	says(t, cluster.Brokers[1].Unreachable, b[1], "a broker of another cluster answers", `"theirs", not "ours"`)
	says(t, cluster.Brokers[2].Unreachable, b[2], "another broker of the cluster answers")
	config = fastConfig(b[0], other.ListenAddrs()[0], b[1])
	cluster = describe(t, config)
	if cluster.ClusterID != "ours" || len(cluster.BootstrapUnreachable) != 1 {
		t.Errorf("cluster %+v", cluster)
	}
	says(t, cluster.BootstrapUnreachable[other.ListenAddrs()[0]], "belongs to another cluster", `"theirs"`, `"ours"`)
}

func TestBrokersThatShareAnAddress(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1))
	host, port, err := net.SplitHostPort(c.ListenAddrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	c.ControlKey(3, func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		response := request.ResponseKind().(*kmsg.MetadataResponse)
		for id := range int32(2) {
			b := kmsg.NewMetadataResponseBroker()
			b.NodeID, b.Host = id, host
			n, _ := strconv.Atoi(port)
			b.Port = int32(n)
			response.Brokers = append(response.Brokers, b)
		}
		return response, nil, true
	})
	cluster := describe(t, fastConfig(c.ListenAddrs()...))
	for _, b := range cluster.Brokers {
		says(t, b.Unreachable, c.ListenAddrs()[0])
	}
	says(t, cluster.Brokers[0].Unreachable, "brokers 0, 1 all tell their clients")
}

func TestDescribeOldBrokers(t *testing.T) {
	for name, version := range map[string]*kversion.Versions{
		"0.11": kversion.V0_11_0(), "1.1": kversion.V1_1_0(), "2.2": kversion.V2_2_0(), "2.3": kversion.V2_3_0(), "2.8": kversion.V2_8_0(), "3.6": kversion.V3_6_0(), "3.7": kversion.V3_7_0(),
	} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(4, "orders"), kfake.MaxVersions(version))
			cluster := describe(t, fastConfig(c.ListenAddrs()...), "orders", "absent")
			orders := cluster.Topics[0]
			if cluster.Brokers[0].Version != name || cluster.Brokers[0].Unreachable != "" || orders.Partitions != 4 ||
				orders.Configs["max.message.bytes"] == "" || !cluster.Topics[1].Missing {
				t.Errorf("cluster %+v", cluster)
			}
			want := PermissionUnknown
			if name >= "2.3" {
				want = PermissionGranted
			}
			if orders.CanWrite != want || orders.CanCreate != want || orders.CanDescribe != want {
				t.Errorf("rights %v %v %v, want %v", orders.CanWrite, orders.CanCreate, orders.CanDescribe, want)
			}
			if hasID := orders.ID != ""; hasID != (name >= "2.8") {
				t.Errorf("topic id %q", orders.ID)
			}
			if orders.MinISRCapped != (name >= "3.7") {
				t.Errorf("min.insync.replicas capped by the number of replicas: %t", orders.MinISRCapped)
			}
		})
	}
}

// Some services that speak Kafka's protocol lack administrative requests.
func TestABrokerWithoutDescribeConfigsIsReachable(t *testing.T) {
	version := kversion.V3_9_0()
	version.SetMaxKeyVersion(32, -1)
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(4, "orders"), kfake.MaxVersions(version))
	cluster := describe(t, fastConfig(c.ListenAddrs()...), "orders")
	orders := cluster.Topics[0]
	if cluster.Brokers[0].Unreachable != "" || orders.Partitions != 4 || orders.Configs != nil || cluster.CanUseProducerIDs != PermissionGranted {
		t.Errorf("cluster %+v", cluster)
	}
	says(t, orders.ConfigsUnseen, "does not offer DescribeConfigs")
	says(t, cluster.DefaultsUnseen, "does not offer DescribeConfigs")
}

func TestBrokersBefore011AreNotEvenAsked(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.MaxVersions(kversion.V0_10_2()))
	cluster, err := newTestClient(t, fastConfig(c.ListenAddrs()...)).Describe(patiently(t), []string{"orders"})
	if err == nil {
		t.Fatalf("described %+v", cluster)
	}
	says(t, err.Error(), "older than Kafka 0.11")
}

func TestReleaseOf(t *testing.T) {
	for name, version := range map[string]*kversion.Versions{
		"0.11": kversion.V0_11_0(), "1.0": kversion.V1_0_0(), "1.1": kversion.V1_1_0(), "2.0": kversion.V2_0_0(), "2.1": kversion.V2_1_0(),
		"2.2": kversion.V2_2_0(), "2.3": kversion.V2_3_0(), "2.4": kversion.V2_4_0(), "2.5": kversion.V2_5_0(), "2.6": kversion.V2_6_0(),
		"2.7": kversion.V2_7_0(), "2.8": kversion.V2_8_0(), "3.0": kversion.V3_0_0(), "3.1": kversion.V3_1_0(), "3.2": kversion.V3_2_0(),
		"3.3 or 3.4": kversion.V3_3_0(), "3.5": kversion.V3_5_0(), "3.6": kversion.V3_6_0(), "3.7": kversion.V3_7_0(), "3.8": kversion.V3_8_0(),
		"3.9": kversion.V3_9_0(), "4.0": kversion.V4_0_0(), "4.1": kversion.V4_1_0(), "4.2": kversion.V4_2_0(), "4.3": kversion.V4_3_0(),
		"4.4 or newer": kversion.V4_4_0(), "": kversion.V0_10_2(),
	} {
		newest := make(offers)
		for key := range int16(200) {
			if n, ok := version.LookupMaxKeyVersion(key); ok {
				newest[key] = n
			}
		}
		if got := newest.release(); got != name {
			t.Errorf("%s is taken for %q", name, got)
		}
	}
}

func TestPermitted(t *testing.T) {
	for set, want := range map[int32]Permission{math.MinInt32: PermissionUnknown, 0: PermissionDenied, 1 << operationWrite: PermissionGranted, 1 << operationCreate: PermissionDenied} {
		if got := permitted(set, operationWrite); got != want {
			t.Errorf("WRITE in %#x is %v, want %v", set, got, want)
		}
	}
	const u, g, d = PermissionUnknown, PermissionGranted, PermissionDenied
	for pair, want := range map[[2]Permission]Permission{{u, u}: u, {u, g}: g, {u, d}: u, {g, d}: g, {g, g}: g, {d, d}: d} {
		for _, got := range []Permission{either(pair[0], pair[1]), either(pair[1], pair[0])} {
			if got != want {
				t.Errorf("either of %v is %v, want %v", pair, got, want)
			}
		}
	}
}

func TestDescribeEndsWithItsContext(t *testing.T) {
	silent := serve(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	config := fastConfig(silent)
	config.RequestTimeout = patience
	ctx, cancel := context.WithCancelCause(context.Background())
	asked := make(chan struct{})
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		defer close(asked)
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	go func() {
		<-asked
		cancel(errClosed)
	}()
	if _, err := newTestClient(t, config).Describe(ctx, nil); !errors.Is(err, errClosed) {
		t.Errorf("error %v, want the cause of the end", err)
	}
}

func TestTopicsWithDefects(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(2))
	c.ControlKey(3, func(request kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if names := request.(*kmsg.MetadataRequest).Topics; len(names) != 3 {
			return nil, nil, false
		}
		response := request.ResponseKind().(*kmsg.MetadataResponse)
		host, port, _ := net.SplitHostPort(c.ListenAddrs()[0])
		n, _ := strconv.Atoi(port)
		b := kmsg.NewMetadataResponseBroker()
		b.NodeID, b.Host, b.Port = 0, host, int32(n)
		response.Brokers = append(response.Brokers, b)
		for name, code := range map[string]int16{"orders": 0, "illegal": 17, "odd": -1} {
			topic := kmsg.NewMetadataResponseTopic()
			topic.Topic, topic.ErrorCode = kmsg.StringPtr(name), code
			for id := range int32(3) {
				p := kmsg.NewMetadataResponseTopicPartition()
				p.Partition, p.Leader, p.Replicas, p.ISR = id, 0, []int32{0, 7, 9}[:3-id], []int32{0}
				if id == 1 {
					p.Leader, p.ErrorCode = -1, 5
				}
				topic.Partitions = append(topic.Partitions, p)
			}
			response.Topics = append(response.Topics, topic)
		}
		return response, nil, true
	})
	cluster := describe(t, fastConfig(c.ListenAddrs()[0]), "orders", "illegal", "odd")
	orders := cluster.Topics[0]
	if orders.MinReplicas != 1 || !slices.Equal(orders.OfflinePartitions, []int32{1}) || orders.CanWrite != PermissionUnknown {
		t.Errorf("topic %+v", orders)
	}
	says(t, orders.ConfigsUnseen, "its settings cannot be read", "UNKNOWN_TOPIC_OR_PARTITION")
	says(t, cluster.Topics[1].Unseen, "no topic can have this name")
	says(t, cluster.Topics[2].Unseen, "UNKNOWN_SERVER_ERROR")
	var ids []string
	for _, b := range cluster.Brokers {
		ids = append(ids, fmt.Sprintf("%d %q", b.ID, b.Address))
	}
	if want := []string{fmt.Sprintf("0 %q", c.ListenAddrs()[0]), `7 ""`, `9 ""`}; !reflect.DeepEqual(ids, want) {
		t.Errorf("brokers %v, want %v", ids, want)
	}
	says(t, cluster.Brokers[1].Unreachable, "broker 7 has replicas", "it is down")
}
