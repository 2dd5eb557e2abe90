package main

import (
	"crypto/tls"
	"time"

	"github.com/cdcpub/cdcpub/internal/config"
	"github.com/cdcpub/cdcpub/internal/kafka"
)

// kafkaClient makes the client that a configuration describes. Files are read
// once to see that they are there, and again for each connection.
func kafkaClient(c *config.Config) (*kafka.Client, error) {
	settings := kafka.Config{
		Brokers: c.Kafka.Brokers, ClientID: c.Kafka.ClientID,
		Compression: string(c.Kafka.Compression), Linger: time.Duration(c.Kafka.Linger),
		BatchBytes: int(c.Kafka.BatchBytes), RequestTimeout: time.Duration(c.Kafka.RequestTimeout),
	}
	if c.Kafka.TLS.Enabled {
		if _, err := c.Kafka.TLS.ClientConfig(); err != nil {
			return nil, err
		}
		settings.TLS = func() (*tls.Config, error) { return c.Kafka.TLS.ClientConfig() }
	}
	var err error
	if settings.SASL, err = saslOf(&c.Kafka.SASL); err != nil {
		return nil, err
	}
	return kafka.NewClient(settings)
}

// transactionalID is the same for all publishers of a slot and for nobody else;
// slot names are unique on a server. It is empty when fencing is off.
func transactionalID(c *config.Config, systemID string) string {
	if !c.Kafka.Fencing {
		return ""
	}
	return "cdcpub-" + c.Postgres.Slot + "-" + systemID
}

// saslOf is nil without a mechanism.
func saslOf(s *config.SASL) (*kafka.SASL, error) {
	made := &kafka.SASL{Mechanism: string(s.Mechanism), User: s.User}
	switch {
	case s.Mechanism == config.SASLNone:
		return nil, nil
	case s.Mechanism.HasPassword():
		if _, err := s.CurrentPassword(); err != nil {
			return nil, err
		}
		made.Password = s.CurrentPassword
	case s.Mechanism == config.SASLOAuthBearer:
		if _, err := s.OAuth.CurrentSecret(); err != nil {
			return nil, err
		}
		made.Tokens = kafka.OAuthTokens(kafka.OAuth{
			TokenURL: string(s.OAuth.TokenURL), ClientID: s.OAuth.ClientID, Secret: s.OAuth.CurrentSecret,
			Scopes: s.OAuth.Scopes, CAFile: s.OAuth.CAFile,
		})
	case s.Mechanism == config.SASLAWSMSKIAM:
		region, err := s.AWS.CurrentRegion()
		if err != nil {
			return nil, err
		}
		made.Tokens = kafka.MSKTokens(region)
	}
	return made, nil
}
