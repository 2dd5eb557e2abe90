package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/cdcpub/cdcpub/internal/peercert"
)

// OAuth says where tokens of OAUTHBEARER come from: an authorization server
// that grants them to a client's credentials (RFC 6749, section 4.4).
type OAuth struct {
	// TokenURL is the server's token endpoint. Only its host is ever shown.
	TokenURL string
	ClientID string
	// Secret is asked for each token. Its errors must hold no secret.
	Secret func() (string, error)
	Scopes []string
	// CAFile has the trusted certificates of the endpoint in PEM form, read
	// again for each token. Without one the system's are trusted.
	CAFile string
}

// OAuthTokens are tokens from an authorization server.
func OAuthTokens(o OAuth) *Tokens { return NewTokens(o.fetch) }

func (o OAuth) fetch(ctx context.Context) (Token, error) {
	secret, err := o.Secret()
	if err != nil {
		return Token{}, err
	}
	client, err := o.client()
	if err != nil {
		return Token{}, err
	}
	defer client.CloseIdleConnections()
	config := clientcredentials.Config{ClientID: o.ClientID, ClientSecret: secret, TokenURL: o.TokenURL, Scopes: o.Scopes}
	token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, client))
	if err != nil {
		return Token{}, o.explain(ctx, err)
	}
	return Token{Value: token.AccessToken, Expires: token.Expiry}, nil
}

// client follows no redirects: they would carry the secret elsewhere.
func (o OAuth) client() (*http.Client, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("kafka.sasl.oauth.ca_file: %w", err)
		}
		trusted := x509.NewCertPool()
		if !trusted.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("kafka.sasl.oauth.ca_file: %s has no certificate in PEM form", o.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted}
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// explain is one sentence without the URL and without what the server wrote but
// for the code of its error, since either may hold a secret.
func (o OAuth) explain(ctx context.Context, err error) error {
	var refused *oauth2.RetrieveError
	var request *url.Error
	fault := peercert.Read(err, time.Now())
	switch {
	case errors.As(err, &refused):
		answer := "status " + fmt.Sprint(refused.Response.StatusCode)
		if errorCode.MatchString(refused.ErrorCode) {
			answer += ", " + refused.ErrorCode
		}
		return fmt.Errorf("the token endpoint at %s gives no token (%s): check kafka.sasl.oauth.client_id, client_secret and scopes, and that the client may use the grant client_credentials", o.host(), answer)
	case fault != nil:
		return fmt.Errorf("the token endpoint at %s %s: see kafka.sasl.oauth.ca_file", o.host(), fault.Text)
	case ctx.Err() != nil:
		return fmt.Errorf("the token endpoint at %s has not answered: %w", o.host(), context.Cause(ctx))
	case errors.As(err, &request):
		return &toldError{fmt.Sprintf("the token endpoint cannot be asked: %s; check kafka.sasl.oauth.token_url", explain(o.host(), request.Err)), request.Err}
	}
	return fmt.Errorf("the token endpoint at %s answers with something that is no token: check kafka.sasl.oauth.token_url", o.host())
}

// errorCode matches the values of error in RFC 6749, section 5.2.
var errorCode = regexp.MustCompile(`^[a-z_]{1,40}$`)

func (o OAuth) host() string {
	parsed, err := url.Parse(o.TokenURL)
	if err != nil {
		return "kafka.sasl.oauth.token_url"
	}
	return parsed.Host
}
