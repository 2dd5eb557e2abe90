package config

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"
)

func (v *validator) kafka(k *Kafka) {
	v.required("kafka.brokers", len(k.Brokers) == 0, "[kafka-1:9092, kafka-2:9092]")
	seen := map[string]bool{}
	for i, broker := range k.Brokers {
		path := fmt.Sprintf("kafka.brokers[%d]", i)
		switch err := checkAddress(broker); {
		case err != nil:
			v.fail(path, err.Error())
		case seen[broker]:
			v.fail(path, fmt.Sprintf("%s is listed twice", broker))
		}
		seen[broker] = true
	}
	v.topics(k)
	oneOf(v, "kafka.compression", k.Compression, CompressionNone, CompressionGzip,
		CompressionSnappy, CompressionLZ4, CompressionZstd)
	v.between("kafka.linger", k.Linger, 0, seconds(1))
	v.between("kafka.request_timeout", k.RequestTimeout, seconds(1), seconds(300))
	const batch, window = "kafka.batch_bytes", "window.bytes"
	switch {
	case k.BatchBytes < KiB || k.BatchBytes > 8*MiB:
		v.fail(batch, fmt.Sprintf("%s is not from %s to %s", k.BatchBytes, KiB, 8*MiB))
	case k.BatchBytes > v.cfg.Window.Bytes:
		v.fail(batch, fmt.Sprintf("%s is more than %s (%s), so that such a batch can never be filled",
			k.BatchBytes, window, v.cfg.Window.Bytes), window)
	}
	v.required("kafka.client_id", k.ClientID == "", "cdcpub")
}

func (v *validator) topics(k *Kafka) {
	missing := k.Topic == "" && len(k.Topics) == 0
	if v.required("kafka.topic", missing, "outbox.event.{aggregate_type}") && k.Topic != "" {
		if err := checkTemplate(k.Topic); err != nil {
			v.fail("kafka.topic", err.Error())
		}
	}
	for _, e := range k.Topics.entries() {
		path := join("kafka.topics", printable(e.key))
		switch {
		case e.key == "":
			v.fail("kafka.topics", "an aggregate type is empty")
		case !validTopic(e.value):
			v.fail(path, fmt.Sprintf("%q is not a topic name; %s", e.value, topicRule))
		}
	}
	if len(k.Topics) > 0 && v.cfg.Outbox.Columns.AggregateType == "" {
		v.fail("kafka.topics", "needs outbox.columns.aggregate_type", "outbox.columns.aggregate_type")
	}
}

// maxTopic and topicText follow org.apache.kafka.common.internals.Topic.
const maxTopic = 249

var topicText = regexp.MustCompile(`^[A-Za-z0-9._-]*$`)

const topicRule = "it may have letters, digits, . _ and -, up to 249 of them"

func validTopic(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= maxTopic && topicText.MatchString(name)
}

// checkTemplate checks the syntax of a topic template: text and {column}.
func checkTemplate(template string) error {
	text, rest := "", template
	for rest != "" {
		before, after, found := strings.Cut(rest, "{")
		text += before
		if !found {
			break
		}
		column, behind, closed := strings.Cut(after, "}")
		switch {
		case !closed:
			return fmt.Errorf("%q has a { without a }", template)
		case column == "" || strings.Contains(column, "{"):
			return fmt.Errorf("%q must have the name of one column within { and }", template)
		}
		rest = behind
	}
	fixed := text == template
	if !topicText.MatchString(text) || len(text) > maxTopic || fixed && !validTopic(text) {
		return fmt.Errorf("%q makes no topic name; besides {column} %s", template, topicRule)
	}
	return nil
}

func (v *validator) tls(t *TLS) {
	const path = "kafka.tls"
	for _, f := range leaves(t, path) {
		if !t.Enabled && f.path != path+".enabled" && f.value.String() != "" {
			v.fail(f.path, "has no effect unless kafka.tls.enabled is true", path+".enabled")
		}
	}
	if (t.CertFile == "") != (t.KeyFile == "") {
		stated := path + ".cert_file"
		if t.CertFile == "" {
			stated = path + ".key_file"
		}
		v.fail(stated, "cert_file and key_file need each other", path+".cert_file", path+".key_file")
	}
}

// checkAddress checks host:port. It does not repeat what may be a password.
func checkAddress(address string) error {
	host, port, err := net.SplitHostPort(address)
	switch {
	case strings.ContainsAny(address, "/@ "):
		return errors.New("must be host:port alone")
	case err != nil:
		return fmt.Errorf("%q is not host:port", address)
	case host == "":
		return fmt.Errorf("%q has no host", address)
	case !validPort(port):
		return fmt.Errorf("%q has no port from 1 to 65535", address)
	}
	return nil
}
