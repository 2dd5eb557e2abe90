package config

import (
	"fmt"
	"regexp"
	"strings"
)

const saslPath = "kafka.sasl"

func (v *validator) sasl(s *SASL) {
	const mechanism = saslPath + ".mechanism"
	if !oneOf(v, mechanism, s.Mechanism, SASLNone, SASLPlain, SASLScramSHA256, SASLScramSHA512, SASLOAuthBearer, SASLAWSMSKIAM) {
		return
	}
	for _, f := range leaves(s, saslPath) {
		if f.path != mechanism && !f.isEmpty() && !s.Mechanism.uses(f.path) {
			why := fmt.Sprintf("has no effect with %s %s", mechanism, s.Mechanism)
			if s.Mechanism == SASLNone {
				why = "has no effect unless " + mechanism + " is stated"
			}
			v.fail(f.path, why, mechanism)
		}
	}
	switch {
	case s.Mechanism.HasPassword():
		v.needs(s.Mechanism, saslPath+".user", s.User == "")
		v.secret(s.Mechanism, saslPath+".password", s.Password, s.PasswordFile)
	case s.Mechanism == SASLOAuthBearer:
		v.oauth(&s.OAuth)
	case s.Mechanism == SASLAWSMSKIAM:
		v.aws(s.AWS)
	}
}

// uses tells if the mechanism looks at the field.
func (m SASLMechanism) uses(path string) bool {
	rest := strings.TrimPrefix(path, saslPath+".")
	switch {
	case strings.HasPrefix(rest, "oauth."):
		return m == SASLOAuthBearer
	case strings.HasPrefix(rest, "aws."):
		return m == SASLAWSMSKIAM
	}
	return m.HasPassword()
}

// needs reports what a mechanism lacks.
func (v *validator) needs(m SASLMechanism, path string, missing bool) {
	if missing && !v.unread {
		v.fail(path, fmt.Sprintf("is required for %s %s", saslPath+".mechanism", m), saslPath+".mechanism")
	}
}

// secret checks that a secret is stated once, by itself or by its file.
func (v *validator) secret(m SASLMechanism, path string, stated Secret, file string) {
	twin := path + "_file"
	switch {
	case stated == "" && file == "" && !v.unread && !v.failed[twin]:
		v.fail(path, fmt.Sprintf("is required for %s %s, or else %s", saslPath+".mechanism", m, twin), saslPath+".mechanism")
	case stated != "" && file != "":
		v.fail(twin, fmt.Sprintf("there is %s too; remove one of them", path), path)
	}
}

func (v *validator) oauth(o *OAuth) {
	const path = saslPath + ".oauth"
	if v.needs(SASLOAuthBearer, path+".token_url", o.TokenURL == ""); o.TokenURL != "" {
		switch parsed, err := o.TokenURL.check(); {
		case err != nil:
			v.fail(path+".token_url", err.Error())
		case parsed.User != nil:
			v.fail(path+".token_url", "must not have a user or password; they are client_id and client_secret")
		}
	}
	v.needs(SASLOAuthBearer, path+".client_id", o.ClientID == "")
	v.secret(SASLOAuthBearer, path+".client_secret", o.ClientSecret, o.ClientSecretFile)
	for i, scope := range o.Scopes {
		if !scopeToken.MatchString(scope) {
			v.fail(fmt.Sprintf("%s.scopes[%d]", path, i), "must be one scope: printable ASCII without spaces, quotes and backslashes")
		}
	}
}

// scopeToken is that of RFC 6749, section 3.3.
var scopeToken = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]+$`)

// region is like us-east-1 or us-gov-west-1; it becomes a part of a host name.
var region = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)+$`)

func (v *validator) aws(a AWS) {
	if a.Region != "" && !region.MatchString(a.Region) {
		v.fail(saslPath+".aws.region", fmt.Sprintf("%q is not a region, for example eu-central-1", a.Region))
	}
	if tls := "kafka.tls.enabled"; !v.cfg.Kafka.TLS.Enabled {
		v.fail(saslPath+".mechanism", fmt.Sprintf("%s needs %s: MSK offers IAM on TLS listeners only", SASLAWSMSKIAM, tls), tls)
	}
}

// createTopics checks how topics would be created.
func (v *validator) createTopics(c *CreateTopics) {
	const path = "kafka.create_topics"
	const partitions, replicas, configs = path + ".partitions", path + ".replication_factor", path + ".configs"
	const most = 10_000
	if c.Partitions < 0 || c.Partitions > most {
		v.fail(partitions, fmt.Sprintf("%d is not from 0 to %d", c.Partitions, most))
	}
	if c.ReplicationFactor != BrokerDefault && (c.ReplicationFactor < 1 || c.ReplicationFactor > 100) {
		v.fail(replicas, fmt.Sprintf("%d is neither %d, for the brokers' default, nor from 1 to 100", c.ReplicationFactor, BrokerDefault))
	}
	for _, e := range c.Configs.entries() {
		if e.key == "" || e.value == "" {
			v.fail(join(configs, printable(e.key)), "needs a name and a value")
		}
	}
	if c.Partitions != 0 {
		return
	}
	if c.ReplicationFactor != BrokerDefault {
		v.fail(replicas, "has no effect unless "+partitions+" is stated", partitions)
	}
	if len(c.Configs) > 0 {
		v.fail(configs, "has no effect unless "+partitions+" is stated", partitions)
	}
}
