package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// ClientConfig returns the TLS configuration for the brokers, nil if TLS is not
// enabled. It reads the files, so that errors show at once; the client
// certificate is read again at each handshake, so that a renewed one is used.
// Errors begin with the field.
func (t TLS) ClientConfig() (*tls.Config, error) {
	if !t.Enabled {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := readFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("kafka.tls.ca_file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("kafka.tls.ca_file: %s has no certificate in PEM form; name a file that begins with -----BEGIN CERTIFICATE-----", t.CAFile)
		}
	}
	if t.CertFile != "" {
		if _, err := t.keyPair(); err != nil {
			return nil, err
		}
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return t.keyPair()
		}
	}
	return config, nil
}

func (t TLS) keyPair() (*tls.Certificate, error) {
	cert, err := readFile(t.CertFile)
	if err != nil {
		return nil, fmt.Errorf("kafka.tls.cert_file: %w", err)
	}
	key, err := readFile(t.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("kafka.tls.key_file: %w", err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("kafka.tls.cert_file and kafka.tls.key_file: %w; name a certificate and its own key, both in PEM form and without a passphrase", err)
	}
	return &pair, nil
}
