package peercert

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"
)

func TestEachFaultHasItsOwnText(t *testing.T) {
	now := time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)
	cert := &x509.Certificate{
		Subject: pkix.Name{CommonName: "db"}, Issuer: pkix.Name{CommonName: "CA"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(-time.Minute),
		DNSNames: []string{"a", "b", "c", "d", "e"}, IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1)},
	}
	future := &x509.Certificate{Subject: cert.Subject, NotBefore: now.Add(time.Hour)}
	for want, err := range map[string]error{
		`1 has a certificate that no trusted authority has signed (its chain ends at "CN=CA")`:                                        x509.UnknownAuthorityError{Cert: cert},
		`1 has a certificate that no trusted authority has signed (its chain ends at "CN=db")`:                                        x509.UnknownAuthorityError{Cert: &x509.Certificate{Subject: cert.Subject, Issuer: cert.Subject}},
		`1 has a certificate that no trusted authority has signed`:                                                                    x509.UnknownAuthorityError{},
		`2 has a certificate that expired on 2026-05-06T07:07:09Z ("CN=db"); this machine's clock says 2026-05-06T07:08:09Z`:          x509.CertificateInvalidError{Cert: cert, Reason: x509.Expired},
		`3 has a certificate that is not valid before 2026-05-06T08:08:09Z ("CN=db"); this machine's clock says 2026-05-06T07:08:09Z`: x509.CertificateInvalidError{Cert: future, Reason: x509.Expired},
		`4 has a certificate that is not for x, but for a, b, c, d, e, and 1 more`:                                                    x509.HostnameError{Certificate: cert, Host: "x"},
		`4 has a certificate without a subject alternative name, so that it is not for x`:                                             x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"},
		`5 has a certificate that cannot be used: x509: certificate specifies an incompatible key usage`:                              x509.CertificateInvalidError{Cert: cert, Reason: x509.IncompatibleUsage},
	} {
		got := Read(fmt.Errorf("handshake: %w", err), now)
		if got == nil || fmt.Sprint(got.Kind, " ", got.Text) != want {
			t.Errorf("got  %v\nwant %s", got, want)
		}
	}
	if got := Read(errors.New("connection refused"), now); got != nil {
		t.Errorf("a fault where there is none: %v", got)
	}
}
