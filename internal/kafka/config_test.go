package kafka

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestValidateNamesAllProblemsAtOnce(t *testing.T) {
	c := Config{
		Brokers: []string{"nowhere", "ok:9092"}, Compression: "brotli", Linger: -1, BatchBytes: maxRequestBytes + 1,
		MaxInFlightPerBroker: -1, RequestTimeout: 1, DialTimeout: 1, BackoffMin: 2 * time.Second, BackoffMax: time.Second,
		OperatorBackoffMax: time.Millisecond, RejectedInterval: 1, TopicCheckInterval: 1, SASL: &SASL{Mechanism: "GSSAPI", Password: password("hush")},
	}
	c.SetDefaults()
	err := c.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`"nowhere" is not host:port`, "brotli", "linger", "batch_bytes", "max_in_flight_per_broker", "request_timeout", "dial_timeout",
		"backoff_max", "operator_backoff_max", "rejected_interval", "topic_check_interval", "GSSAPI",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not name %s: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hush") {
		t.Error("the error has the password")
	}
}

func TestEachMechanismNeedsItsCredentials(t *testing.T) {
	for says, sasl := range map[string]*SASL{
		"user and password are both needed":                         {User: "us"},
		"kafka: sasl: user and password are both needed":            {Mechanism: MechanismSCRAMSHA512, Password: password("hush")},
		"kafka: sasl: OAUTHBEARER needs a source of tokens":         {Mechanism: MechanismOAuthBearer},
		"kafka: sasl: AWS_MSK_IAM needs a source of tokens":         {Mechanism: MechanismAWSMSKIAM},
		`kafka: sasl: mechanism "SCRAM-SHA-1" is none of PLAIN, SC`: {Mechanism: "SCRAM-SHA-1", User: "us", Password: password("hush")},
	} {
		c := Config{Brokers: []string{"kafka:9092"}, SASL: sasl}
		c.SetDefaults()
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", sasl, err)
		}
	}
}

func TestDefaultsAreValid(t *testing.T) {
	c := Config{Brokers: []string{"kafka:9092"}}
	c.SetDefaults()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if c.Compression != "lz4" || c.BatchBytes != 512<<10 || c.RequestTimeout != 8*time.Second || c.BackoffMax != time.Second {
		t.Errorf("%+v", c)
	}
	if err := (&Config{}).Validate(); err == nil || !strings.Contains(err.Error(), "at least one address") {
		t.Errorf("no brokers: %v", err)
	}
}

func TestPasswordIsNotPrinted(t *testing.T) {
	c := Config{SASL: &SASL{User: "us", Password: password("hush")}}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(format, c.SASL) + fmt.Sprintf(format, *c.SASL); strings.Contains(text, "hush") {
			t.Errorf("%s prints %s", format, text)
		}
	}
}
