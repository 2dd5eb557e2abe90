// Package peercert says in plain words why a server's certificate was refused.
// It is a pure reading of the errors of crypto/tls and crypto/x509; what to do
// about it is the caller's to say, whose settings have names.
package peercert

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is why a certificate was refused.
type Kind uint8

// The kinds of faults.
const (
	// Untrusted: no authority that we trust has signed it.
	Untrusted Kind = iota + 1
	// Expired: its time is over, by this machine's clock.
	Expired
	// NotYetValid: its time has not begun, by this machine's clock.
	NotYetValid
	// WrongName: it is for other names than the one that was connected to.
	WrongName
	// Unusable is anything else, such as a certificate for another purpose.
	Unusable
)

// Fault is what is wrong with a certificate.
type Fault struct {
	Kind Kind
	// Text goes on after the server's name: "has a certificate that ...".
	Text string
}

// Read finds the fault in an error of a TLS handshake, nil if there is none in
// it. now decides between a certificate that has expired and one that is not
// valid yet.
func Read(err error, now time.Time) *Fault {
	var (
		untrusted x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		name      x509.HostnameError
		any       *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &name):
		return &Fault{WrongName, wrongName(name)}
	case errors.As(err, &untrusted):
		return &Fault{Untrusted, untrustedText(untrusted.Cert)}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		return outOfTime(invalid.Cert, now)
	case errors.As(err, &invalid):
		return &Fault{Unusable, "has a certificate that cannot be used: " + oneLine(invalid)}
	case errors.As(err, &any):
		return &Fault{Unusable, "has a certificate that cannot be verified: " + oneLine(any.Err)}
	}
	return nil
}

func untrustedText(cert *x509.Certificate) string {
	if cert == nil {
		return "has a certificate that no trusted authority has signed"
	}
	return fmt.Sprintf("has a certificate that no trusted authority has signed (its chain ends at %q)", cert.Issuer)
}

func outOfTime(cert *x509.Certificate, now time.Time) *Fault {
	if now.Before(cert.NotBefore) {
		return &Fault{NotYetValid, fmt.Sprintf("has a certificate that is not valid before %s (%q); this machine's clock says %s",
			stamp(cert.NotBefore), cert.Subject, stamp(now))}
	}
	return &Fault{Expired, fmt.Sprintf("has a certificate that expired on %s (%q); this machine's clock says %s",
		stamp(cert.NotAfter), cert.Subject, stamp(now))}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// mostNames bounds the names that are listed.
const mostNames = 5

func wrongName(e x509.HostnameError) string {
	var names []string
	if e.Certificate != nil {
		names = slices.Clone(e.Certificate.DNSNames)
		for _, ip := range e.Certificate.IPAddresses {
			names = append(names, ip.String())
		}
	}
	if len(names) == 0 {
		return fmt.Sprintf("has a certificate without a subject alternative name, so that it is not for %s", e.Host)
	}
	if more := len(names) - mostNames; more > 0 {
		names = append(names[:mostNames], fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("has a certificate that is not for %s, but for %s", e.Host, strings.Join(names, ", "))
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
