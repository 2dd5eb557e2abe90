package kafka

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"slices"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"
)

// The SASL mechanisms, as Kafka calls them but for the last one: IAM of Amazon
// MSK is OAUTHBEARER on the wire, with a signed request for a token.
const (
	MechanismPlain       = sarama.SASLTypePlaintext
	MechanismSCRAMSHA256 = sarama.SASLTypeSCRAMSHA256
	MechanismSCRAMSHA512 = sarama.SASLTypeSCRAMSHA512
	MechanismOAuthBearer = sarama.SASLTypeOAuth
	MechanismAWSMSKIAM   = "AWS_MSK_IAM"
)

// SASL says who we are on every connection. A password or a token is asked for
// when a connection is made, so that a new one needs no restart.
type SASL struct {
	// Mechanism is one of those above, default PLAIN.
	Mechanism string
	// User is the name for PLAIN and SCRAM.
	User string
	// Password is asked for each connection with PLAIN and SCRAM. It must be
	// safe for concurrent use. What it returns is never logged and in no error
	// text, and its own errors must hold no secret.
	Password func() (string, error)
	// Tokens are for OAUTHBEARER and AWS_MSK_IAM.
	Tokens *Tokens
}

// String names mechanism and user.
func (s SASL) String() string {
	if s.hasPassword() {
		return fmt.Sprintf("%s user %q", s.Mechanism, s.User)
	}
	return s.Mechanism
}

// GoString is String.
func (s SASL) GoString() string { return s.String() }

func (s *SASL) hasPassword() bool {
	return slices.Contains([]string{MechanismPlain, MechanismSCRAMSHA256, MechanismSCRAMSHA512}, s.Mechanism)
}

// problems lists what is wrong with it.
func (s *SASL) problems() []error {
	var problems []error
	bearer := s.Mechanism == MechanismOAuthBearer || s.Mechanism == MechanismAWSMSKIAM
	if !s.hasPassword() && !bearer {
		problems = append(problems, fmt.Errorf("kafka: sasl: mechanism %q is none of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER, AWS_MSK_IAM", s.Mechanism))
	}
	if s.hasPassword() && (s.User == "" || s.Password == nil) {
		problems = append(problems, errors.New("kafka: sasl: user and password are both needed"))
	}
	if bearer && s.Tokens == nil {
		problems = append(problems, fmt.Errorf("kafka: sasl: %s needs a source of tokens", s.Mechanism))
	}
	return problems
}

// prepare puts what one connection needs into its configuration: everything
// that can be had without the broker is had now, so that its failure has its
// own text.
func (s *SASL) prepare(ctx context.Context, config *sarama.Config) error {
	net := &config.Net.SASL
	net.Enable, net.Version = true, sarama.SASLHandshakeV1
	if s.hasPassword() {
		password, err := s.Password()
		if err != nil {
			return err
		}
		if password == "" {
			return fmt.Errorf("the password of user %q is empty", s.User)
		}
		net.Mechanism, net.User, net.Password = sarama.SASLMechanism(s.Mechanism), s.User, password
		net.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient { return &scramClient{mechanism: s.Mechanism} }
		return nil
	}
	if _, err := s.Tokens.current(ctx); err != nil {
		return err
	}
	net.Mechanism, net.TokenProvider = sarama.SASLTypeOAuth, liveTokens{ctx, s.Tokens}
	return nil
}

// liveTokens gives sarama a token when a connection begins, and again when the
// broker wants to see a new one on it (KIP-368). ctx is the connection's.
type liveTokens struct {
	ctx    context.Context
	tokens *Tokens
}

// Token implements sarama.AccessTokenProvider.
func (l liveTokens) Token() (*sarama.AccessToken, error) {
	token, err := l.tokens.current(l.ctx)
	if err != nil {
		return nil, err
	}
	return &sarama.AccessToken{Token: token}, nil
}

// scramClient is one exchange of SCRAM (RFC 5802).
type scramClient struct {
	mechanism    string
	conversation *scram.ClientConversation
}

// Begin implements sarama.SCRAMClient.
func (c *scramClient) Begin(user, password, authzID string) error {
	hash := scram.HashGeneratorFcn(sha256.New)
	if c.mechanism == MechanismSCRAMSHA512 {
		hash = sha512.New
	}
	client, err := hash.NewClient(user, password, authzID)
	if err != nil {
		// The text of the error may have what it does not like.
		return errors.New("the user or the password has characters that SCRAM does not allow (RFC 4013)")
	}
	c.conversation = client.NewConversation()
	return nil
}

// Step implements sarama.SCRAMClient.
func (c *scramClient) Step(challenge string) (string, error) { return c.conversation.Step(challenge) }

// Done implements sarama.SCRAMClient.
func (c *scramClient) Done() bool { return c.conversation.Done() }
