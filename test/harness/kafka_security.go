package harness

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"maps"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// SSLListener are the settings of a listener with TLS: a PEM file with key and
// certificate, and, if clients need a certificate, the authority of those.
func SSLListener(name, keyAndCertFile, clientCAFile string) map[string]string {
	prefix := "listener.name." + strings.ToLower(name) + "."
	settings := map[string]string{
		prefix + "ssl.keystore.type":     "PEM",
		prefix + "ssl.keystore.location": keyAndCertFile,
	}
	if clientCAFile != "" {
		settings[prefix+"ssl.truststore.type"] = "PEM"
		settings[prefix+"ssl.truststore.location"] = clientCAFile
		settings[prefix+"ssl.client.auth"] = "required"
	}
	return settings
}

// SASLListener are the settings of a listener with SASL. users are those of
// PLAIN; those of SCRAM are set by Cluster.SetScramUser. OAUTHBEARER takes
// unsecured tokens (RFC 7515, appendix A.5), as the broker's default handler
// does for tests.
func SASLListener(name string, users map[string]string, mechanisms ...string) map[string]string {
	prefix := "listener.name." + strings.ToLower(name) + "."
	const module = "org.apache.kafka.common.security."
	plain := module + "plain.PlainLoginModule required"
	for user, password := range users {
		plain += fmt.Sprintf(" user_%s=%q", user, password)
	}
	jaas := map[string]string{
		"PLAIN":         plain + ";",
		"SCRAM-SHA-256": module + "scram.ScramLoginModule required;",
		"SCRAM-SHA-512": module + "scram.ScramLoginModule required;",
		"OAUTHBEARER":   module + "oauthbearer.OAuthBearerLoginModule required;",
	}
	settings := map[string]string{prefix + "sasl.enabled.mechanisms": strings.Join(mechanisms, ",")}
	for _, mechanism := range mechanisms {
		settings[prefix+strings.ToLower(mechanism)+".sasl.jaas.config"] = jaas[mechanism]
	}
	return settings
}

// Settings joins settings; later ones win.
func Settings(all ...map[string]string) map[string]string {
	joined := map[string]string{}
	for _, one := range all {
		maps.Copy(joined, one)
	}
	return joined
}

// SetScramUser gives a user a password for SCRAM-SHA-256 and SCRAM-SHA-512,
// anew if there is one.
func (c *Cluster) SetScramUser(ctx context.Context, user, password string) error {
	const scramSHA256, scramSHA512 = 1, 2
	return errors.Join(c.setScram(ctx, user, password, scramSHA256, sha256.New), c.setScram(ctx, user, password, scramSHA512, sha512.New))
}

// setScram makes one request: a broker refuses a user twice in one.
func (c *Cluster) setScram(ctx context.Context, user, password string, mechanism int8, hash func() hash.Hash) error {
	const iterations = 4096
	salt := []byte(rand.Text())
	salted, err := pbkdf2.Key(hash, password, salt, iterations, hash().Size())
	if err != nil {
		return err
	}
	upsertion := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
	upsertion.Name, upsertion.Mechanism, upsertion.Iterations = user, mechanism, iterations
	upsertion.Salt, upsertion.SaltedPassword = salt, salted
	request := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	request.Upsertions = append(request.Upsertions, upsertion)
	ctx, cancel := context.WithTimeout(ctx, adminTimeout)
	defer cancel()
	answer, err := request.RequestWith(ctx, c.admin)
	if err != nil {
		return err
	}
	return topicError(answer.Results[0].ErrorCode, answer.Results[0].ErrorMessage)
}
