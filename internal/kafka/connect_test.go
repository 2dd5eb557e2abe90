package kafka

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kversion"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cdcpub/cdcpub/internal/pipeline"
)

// certificate makes a certificate for 127.0.0.1 and the pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kafka"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// password always gives the same one.
func password(p string) func() (string, error) {
	return func() (string, error) { return p, nil }
}

// fixed always gives the same configuration, or is nil.
func fixed(c *tls.Config) func() (*tls.Config, error) {
	if c == nil {
		return nil
	}
	return func() (*tls.Config, error) { return c, nil }
}

func TestTLSAndSASL(t *testing.T) {
	cert, pool := certificate(t)
	c := startCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(4, "orders"),
		kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}}),
		kfake.EnableSASL(), kfake.Superuser("PLAIN", "us", "hush"))
	trusted := &tls.Config{RootCAs: pool}
	for name, test := range map[string]struct {
		tls   *tls.Config
		sasl  *SASL
		stall string
	}{
		"right":            {trusted, &SASL{User: "us", Password: password("hush")}, ""},
		"wrong password":   {trusted, &SASL{User: "us", Password: password("wrong")}, "closes the connection while it is told who we are (SASL PLAIN user \"us\")"},
		"unknown server":   {&tls.Config{RootCAs: x509.NewCertPool()}, &SASL{User: "us", Password: password("hush")}, "has a certificate that no trusted authority has signed"},
		"no TLS, no SASL":  {nil, nil, "the port may want TLS (kafka.tls)"},
		"TLS without SASL": {trusted, nil, "may want SASL, and kafka.sasl is not configured"},
	} {
		t.Run(name, func(t *testing.T) {
			config := fastConfig(c.ListenAddrs()...)
			config.TLS, config.SASL = fixed(test.tls), test.sasl
			s := startSession(t, newTestClient(t, config), always)
			s.Send(s.numbered("orders", 100, manyKeys(20)))
			if test.stall == "" {
				s.acks(100)
				return
			}
			s.stalls("stalled", func(p pipeline.PartitionStatus) bool { return strings.Contains(p.Stall, test.stall) })
			for _, p := range s.Status().Partitions {
				if strings.Contains(p.Stall, "hush") || strings.Contains(p.Stall, "wrong") {
					t.Errorf("the status has the password: %s", p.Stall)
				}
			}
		})
	}
}

func TestOldBrokers(t *testing.T) {
	for name, version := range map[string]*kversion.Versions{
		"1.0": kversion.V1_0_0(), "2.1": kversion.V2_1_0(), "2.4": kversion.V2_4_0(), "2.8": kversion.V2_8_0(), "3.7": kversion.V3_7_0(),
	} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, kfake.NumBrokers(2), kfake.SeedTopics(4, "orders"), kfake.MaxVersions(version))
			client := newTestClient(t, fastConfig(c.ListenAddrs()...))
			s := startSession(t, client, always)
			s.Send(s.numbered("orders", 500, manyKeys(20)))
			s.acks(500)
			s.stop(patience)
			later := startSession(t, client, always)
			later.next = 500
			later.Send(later.numbered("orders", 500, manyKeys(20)))
			later.acks(500)
			requireExactly(t, c, "orders", 1000)
		})
	}
}

func TestRecordsLargerThanARequestGoAlone(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1))
	if err := c.CreateTopic("orders", 3, map[string]string{"max.message.bytes": "50000000"}); err != nil {
		t.Fatal(err)
	}
	config := fastConfig(c.ListenAddrs()...)
	config.RequestTimeout = patience
	config.Compression = "none"
	s := startSession(t, newTestClient(t, config), always)
	messages := s.numbered("orders", 30, manyKeys(10))
	for _, i := range []int{0, 7, 8, 29} {
		messages[i].Record.Headers[0].Value = bytes.Repeat([]byte("x"), 12<<20)
	}
	s.Send(messages)
	s.acks(30)
	requireExactly(t, c, "orders", 30)
}

func TestLingerGathersASmallBatchAndNotAFullOne(t *testing.T) {
	c := startCluster(t, kfake.NumBrokers(1), kfake.SeedTopics(1, "orders"))
	seen := observe(c)
	config := fastConfig(c.ListenAddrs()...)
	config.Linger = 200 * time.Millisecond
	config.BatchBytes = 4000
	s := startSession(t, newTestClient(t, config), always)
	for range 10 {
		s.Send(s.numbered("orders", 1, oneKey))
	}
	s.acks(10)
	if h := <-seen; h.count != 10 || len(seen) > 0 {
		t.Errorf("the first batch has %d records", h.count)
	}
	config.Linger = time.Minute
	full := startSession(t, newTestClient(t, config), always)
	full.Send(full.numbered("orders", 10, oneKey))
	full.Send(full.numbered("orders", 990, oneKey))
	full.acks(50)
}

// An outage of any length costs one line, and its end another.
func TestOutageIsLoggedOnce(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	r := reporter{log: zap.New(core)}
	for range 2 {
		r.reach(nil)
	}
	for range 1000 {
		r.reach(errors.New("connection refused"))
	}
	r.reach(nil)
	var events []any
	for _, line := range logs.All() {
		events = append(events, line.ContextMap()["event"])
	}
	if want := []any{"kafka_connected", "kafka_unreachable", "kafka_connected"}; !reflect.DeepEqual(events, want) {
		t.Errorf("events %v, want %v", events, want)
	}
}
