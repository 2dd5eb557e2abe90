package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for a test.
type Authority struct {
	// PEM is its own certificate, and File has it.
	PEM, File string

	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Certificate is a signed one with its key, in PEM form. File and KeyFile have
// one each, BothFile the key and then the certificate.
type Certificate struct {
	PEM, Key                string
	File, KeyFile, BothFile string
}

// NewAuthority makes an authority; its files go with the test.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{dir: t.TempDir()}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-24 * time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.key = newKey(t)
	a.PEM = a.sign(t, a.cert, a.key)
	a.File = a.write(t, "ca.crt", a.PEM)
	return a
}

// Issue signs a certificate for a name, which is its common name too, and for
// 127.0.0.1 and localhost if it is "localhost". It is good until the time given.
func (a *Authority) Issue(t testing.TB, file, name string, until time.Time) Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if name == "localhost" {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	c := Certificate{PEM: a.sign(t, template, key), Key: block("PRIVATE KEY", der)}
	c.File, c.KeyFile, c.BothFile = a.write(t, file+".crt", c.PEM), a.write(t, file+".key", c.Key), a.write(t, file+".pem", c.Key+c.PEM)
	return c
}

func (a *Authority) sign(t testing.TB, template *x509.Certificate, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return block("CERTIFICATE", der)
}

// write replaces a file as a rotation does, so that nobody reads half of it.
func (a *Authority) write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	return path
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
