package config

import (
	"errors"
	"os"
)

// SASLMechanism is how a client says who it is.
type SASLMechanism string

// The values of SASLMechanism.
const (
	SASLNone        SASLMechanism = ""
	SASLPlain       SASLMechanism = "PLAIN"
	SASLScramSHA256 SASLMechanism = "SCRAM-SHA-256"
	SASLScramSHA512 SASLMechanism = "SCRAM-SHA-512"
	SASLOAuthBearer SASLMechanism = "OAUTHBEARER"
	SASLAWSMSKIAM   SASLMechanism = "AWS_MSK_IAM"
)

// HasPassword tells if the mechanism needs a user and a password.
func (m SASLMechanism) HasPassword() bool {
	return m == SASLPlain || m == SASLScramSHA256 || m == SASLScramSHA512
}

// SASL configures how cdcpub says to the brokers who it is. PLAIN and
// OAUTHBEARER send what whoever listens can use, so use TLS with them.
type SASL struct {
	// Mechanism is PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or
	// AWS_MSK_IAM, in this spelling; none by default. The other fields need it.
	Mechanism SASLMechanism `yaml:"mechanism"`
	// User is the name for PLAIN and SCRAM, which require it.
	User string `yaml:"user"`
	// Password is that of User. PLAIN and SCRAM require it or PasswordFile.
	Password Secret `yaml:"password"`
	// PasswordFile is a file with the password, read again for each new
	// connection; none by default. It excludes Password.
	PasswordFile string `yaml:"password_file"`
	// OAuth is where OAUTHBEARER has its tokens from.
	OAuth OAuth `yaml:"oauth"`
	// AWS is for AWS_MSK_IAM.
	AWS AWS `yaml:"aws"`
}

// OAuth configures the tokens of OAUTHBEARER: those that an authorization server
// grants to a client's credentials (RFC 6749, section 4.4). A token is used
// until shortly before it expires.
type OAuth struct {
	// TokenURL is the server's token endpoint, http or https, without user and
	// password, never shown beyond its host; OAUTHBEARER requires it.
	TokenURL SecretURL `yaml:"token_url"`
	// ClientID names this client; OAUTHBEARER requires it.
	ClientID string `yaml:"client_id"`
	// ClientSecret is that of ClientID. OAUTHBEARER requires it or
	// ClientSecretFile.
	ClientSecret Secret `yaml:"client_secret"`
	// ClientSecretFile is a file with the secret, read again for each token;
	// none by default. It excludes ClientSecret.
	ClientSecretFile string `yaml:"client_secret_file"`
	// Scopes are asked for; none by default.
	Scopes []string `yaml:"scopes"`
	// CAFile has the trusted certificates of the token endpoint in PEM form,
	// read again for each token. None by default: the system's are trusted.
	CAFile string `yaml:"ca_file"`
}

// AWS configures AWS_MSK_IAM. The credentials come from where the AWS SDK looks
// for them: environment, shared files, web identity, container, instance.
type AWS struct {
	// Region of the cluster. None by default: that of AWS_REGION, or else of
	// AWS_DEFAULT_REGION.
	Region string `yaml:"region"`
}

// CurrentPassword is Password, or what PasswordFile has now. Errors begin with
// the field and hold no secret.
func (s SASL) CurrentPassword() (string, error) {
	return secretFrom(s.Password, s.PasswordFile, "kafka.sasl.password_file")
}

// CurrentSecret is ClientSecret, or what ClientSecretFile has now. Errors begin
// with the field and hold no secret.
func (o OAuth) CurrentSecret() (string, error) {
	return secretFrom(o.ClientSecret, o.ClientSecretFile, "kafka.sasl.oauth.client_secret_file")
}

// CurrentRegion is Region, or that of the process's environment.
func (a AWS) CurrentRegion() (string, error) {
	for _, region := range []string{a.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION")} {
		if region != "" {
			return region, nil
		}
	}
	return "", errors.New("kafka.sasl.aws.region: state it, or AWS_REGION, since AWS_MSK_IAM signs for one region")
}
