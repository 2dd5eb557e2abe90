package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

// newCertificate writes a self-signed certificate for name and its key.
func newCertificate(t *testing.T, dir, file, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		DNSNames:              []string{name},
		NotBefore:             time.Unix(0, 0),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return writeFile(t, dir, file+".crt", block("CERTIFICATE", der)), writeFile(t, dir, file+".key", block("PRIVATE KEY", keyDER))
}

// handshake connects to a server that demands a client certificate, and returns
// the name in the one that it got.
func handshake(t *testing.T, serverCert, serverKey string, client *tls.Config) (string, error) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := tls.Listen("tcp", "127.0.0.1:0",
		&tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	peer := make(chan string, 1)
	go func() {
		defer close(peer)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if server := conn.(*tls.Conn); server.Handshake() == nil {
			peer <- server.ConnectionState().PeerCertificates[0].DNSNames[0]
		}
	}()
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", listener.Addr().String(), client)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return <-peer, nil
}

func TestTLSVerifiesTheBrokerAndShowsTheRenewedCertificate(t *testing.T) {
	dir := t.TempDir()
	serverCert, serverKey := newCertificate(t, dir, "server", "kafka.internal")
	clientCert, clientKey := newCertificate(t, dir, "client", "first")
	settings := TLS{Enabled: true, CAFile: serverCert, CertFile: clientCert, KeyFile: clientKey, ServerName: "kafka.internal"}
	config, err := settings.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if name, err := handshake(t, serverCert, serverKey, config); err != nil || name != "first" {
		t.Fatalf("handshake: %q, %v", name, err)
	}
	newCertificate(t, dir, "client", "second")
	if name, err := handshake(t, serverCert, serverKey, config); err != nil || name != "second" {
		t.Errorf("handshake after renewal: %q, %v", name, err)
	}

	settings.ServerName = "elsewhere.internal"
	if config, err = settings.ClientConfig(); err != nil {
		t.Fatal(err)
	}
	var wrongName x509.HostnameError
	if _, err := handshake(t, serverCert, serverKey, config); !errors.As(err, &wrongName) {
		t.Errorf("handshake with another name: %v", err)
	}
}

func TestTLSErrorsNameTheField(t *testing.T) {
	dir := t.TempDir()
	cert, _ := newCertificate(t, dir, "one", "one")
	_, key := newCertificate(t, dir, "two", "two")
	if config, err := (TLS{CAFile: "/none"}).ClientConfig(); config != nil || err != nil {
		t.Errorf("not enabled: %v, %v", config, err)
	}
	for field, settings := range map[string]TLS{
		"kafka.tls.ca_file: " + key + " has no certificate": {Enabled: true, CAFile: key},
		"kafka.tls.cert_file and kafka.tls.key_file: ":      {Enabled: true, CertFile: cert, KeyFile: key},
	} {
		if _, err := settings.ClientConfig(); err == nil || !strings.HasPrefix(err.Error(), field) {
			t.Errorf("error %v does not begin with %s", err, field)
		}
	}
	if _, err := (TLS{Enabled: true, CAFile: dir + "/none"}).ClientConfig(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}
