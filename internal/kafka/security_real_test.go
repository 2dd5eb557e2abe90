package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/pipeline"
	"github.com/cdcpub/cdcpub/test/harness"
)

// fortress is a real broker with a listener for every kind of security.
type fortress struct {
	*harness.Cluster
	ca, strangers *harness.Authority
	us, stranger  harness.Certificate
	topic         string
}

func startFortress(t *testing.T) *fortress {
	t.Helper()
	f := &fortress{ca: harness.NewAuthority(t, "the house CA"), strangers: harness.NewAuthority(t, "another CA")}
	tomorrow := time.Now().Add(20 * time.Hour)
	server := f.ca.Issue(t, "server", "localhost", tomorrow)
	expired := f.ca.Issue(t, "expired", "localhost", time.Now().Add(-time.Hour))
	elsewhere := f.ca.Issue(t, "elsewhere", "kafka.elsewhere.test", tomorrow)
	f.us, f.stranger = f.ca.Issue(t, "us", "cdcpub", tomorrow), f.strangers.Issue(t, "stranger", "cdcpub", tomorrow)
	users := map[string]string{"plain": "hush-plain"}
	f.Cluster = harness.Kafka(t, harness.KafkaOptions{
		Listeners: map[string]string{
			"CLIENT": "SASL_SSL", "MTLS": "SSL", "EXPIRED": "SSL", "ELSEWHERE": "SSL", "CLEAR": "SASL_PLAINTEXT", "OPEN": "PLAINTEXT",
		},
		Config: harness.Settings(
			harness.SSLListener("CLIENT", server.BothFile, ""), harness.SSLListener("MTLS", server.BothFile, f.ca.File),
			harness.SSLListener("EXPIRED", expired.BothFile, ""), harness.SSLListener("ELSEWHERE", elsewhere.BothFile, ""),
			harness.SASLListener("CLIENT", users, "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
			harness.SASLListener("CLEAR", users, "SCRAM-SHA-512"),
			// The broker's own check of server certificates forbids to start
			// with one for another name.
			map[string]string{"ssl.endpoint.identification.algorithm": ""},
		),
	})
	if err := f.SetScramUser(t.Context(), "scram", "hush-scram"); err != nil {
		t.Fatal(err)
	}
	f.topic = harness.Topic(t, f.Cluster, 1, nil)
	return f
}

// realConfig has the timeouts of a real broker on a busy machine.
func realConfig(brokers []string, tls func() (*tls.Config, error), sasl *SASL) Config {
	return Config{
		Brokers: brokers, TLS: tls, SASL: sasl, BackoffMin: 20 * time.Millisecond, BackoffMax: 100 * time.Millisecond,
		OperatorBackoffMax: 200 * time.Millisecond,
	}
}

func trusting(t *testing.T, ca *harness.Authority, client ...harness.Certificate) func() (*tls.Config, error) {
	t.Helper()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(ca.PEM)) {
		t.Fatal("the authority's certificate cannot be read")
	}
	config := &tls.Config{RootCAs: pool}
	for _, c := range client {
		pair, err := tls.X509KeyPair([]byte(c.PEM), []byte(c.Key))
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = append(config.Certificates, pair)
	}
	return fixed(config)
}

// idp is an authorization server that grants unsecured tokens.
type idp struct {
	*httptest.Server
	granted atomic.Int32
	lasts   time.Duration
	secret  atomic.Value
}

func startIDP(t *testing.T, lasts time.Duration) *idp {
	t.Helper()
	i := &idp{lasts: lasts}
	i.secret.Store("hush-client")
	i.Server = httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Close)
	return i
}

func (i *idp) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	id, secret, _ := r.BasicAuth()
	if r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "kafka" || id != "cdcpub" || secret != i.secret.Load() {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprintf(w, `{"error": "invalid_client", "error_description": "the secret is not %s"}`, secret)
		return
	}
	i.granted.Add(1)
	now := time.Now()
	claims, _ := json.Marshal(map[string]any{"sub": "cdcpub", "iat": now.Unix(), "exp": now.Add(i.lasts).Unix(), "scope": "kafka"})
	encode := base64.RawURLEncoding.EncodeToString
	token := encode([]byte(`{"alg":"none"}`)) + "." + encode(claims) + "."
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": int(i.lasts.Seconds())})
}

func (i *idp) sasl(secret string) *SASL {
	return &SASL{Mechanism: MechanismOAuthBearer, Tokens: OAuthTokens(OAuth{
		TokenURL: i.URL + "/token?tenant=hush-tenant", ClientID: "cdcpub", Secret: password(secret), Scopes: []string{"kafka"},
	})}
}

func TestEveryWayInAndEveryClosedDoorOfARealBroker(t *testing.T) {
	f := startFortress(t)
	tokens := startIDP(t, time.Hour)
	unknown := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(unknown.Close)
	house, other := trusting(t, f.ca), trusting(t, f.strangers)
	user := func(mechanism, name, secret string) *SASL {
		return &SASL{Mechanism: mechanism, User: name, Password: password(secret)}
	}
	secure, open, clear := f.Brokers(), f.Listener("OPEN"), f.Listener("CLEAR")
	scram := user(MechanismSCRAMSHA512, "scram", "hush-scram")
	for name, test := range map[string]struct {
		brokers []string
		tls     func() (*tls.Config, error)
		sasl    *SASL
		says    string // "": it gets in
	}{
		"PLAIN":                   {secure, house, user(MechanismPlain, "plain", "hush-plain"), ""},
		"SCRAM-SHA-256":           {secure, house, user(MechanismSCRAMSHA256, "scram", "hush-scram"), ""},
		"SCRAM-SHA-512":           {secure, house, scram, ""},
		"OAUTHBEARER":             {secure, house, tokens.sasl("hush-client"), ""},
		"SCRAM without TLS":       {clear, nil, scram, ""},
		"mTLS":                    {f.Listener("MTLS"), trusting(t, f.ca, f.us), nil, ""},
		"wrong CA":                {secure, other, scram, `has a certificate that no trusted authority has signed (its chain ends at "CN=the house CA"); put the certificate of its authority into kafka.tls.ca_file`},
		"expired certificate":     {f.Listener("EXPIRED"), house, nil, "has a certificate that expired on "},
		"wrong host name":         {f.Listener("ELSEWHERE"), house, nil, "has a certificate that is not for 127.0.0.1, but for kafka.elsewhere.test; connect by a name that it has"},
		"no client certificate":   {f.Listener("MTLS"), house, nil, "it may not accept the client certificate, or want one; see kafka.tls.cert_file"},
		"strange client":          {f.Listener("MTLS"), trusting(t, f.ca, f.stranger), nil, "it may not accept the client certificate, or want one; see kafka.tls.cert_file"},
		"wrong password, PLAIN":   {secure, house, user(MechanismPlain, "plain", "hush-wrong"), `does not accept user "plain" with its password (SASL PLAIN)`},
		"wrong password, SCRAM":   {secure, house, user(MechanismSCRAMSHA512, "scram", "hush-wrong"), `does not accept user "scram" with its password (SASL SCRAM-SHA-512)`},
		"unknown user":            {secure, house, user(MechanismSCRAMSHA256, "nobody", "hush-scram"), `does not accept user "nobody" with its password`},
		"unknown mechanism":       {clear, nil, user(MechanismPlain, "plain", "hush-plain"), "does not offer SASL PLAIN on this listener: correct kafka.sasl.mechanism"},
		"SASL to none":            {open, nil, scram, "has no SASL on this listener: use one that has, or take kafka.sasl away"},
		"SASL is wanted":          {secure, house, nil, "the port may want SASL, and kafka.sasl is not configured"},
		"SASL is wanted in clear": {clear, nil, nil, "the port may want SASL, and kafka.sasl is not configured"},
		"TLS to a plain listener": {open, house, nil, "in the middle of the TLS handshake: the port may be one without TLS"},
		"plain to a TLS listener": {secure, nil, nil, "TLS"},
		"wrong client secret":     {secure, house, tokens.sasl("hush-wrong"), "gives no token (status 401, invalid_client): check kafka.sasl.oauth.client_id, client_secret and scopes"},
		"no token endpoint": {secure, house, &SASL{Mechanism: MechanismOAuthBearer, Tokens: OAuthTokens(OAuth{
			TokenURL: "http://127.0.0.1:1/hush-tenant", ClientID: "cdcpub", Secret: password("hush-client")})}, "the token endpoint cannot be asked: 127.0.0.1:1 refuses the connection"},
		"unknown token endpoint": {secure, house, &SASL{Mechanism: MechanismOAuthBearer, Tokens: OAuthTokens(OAuth{
			TokenURL: unknown.URL, ClientID: "cdcpub", Secret: password("hush-client")})}, "has a certificate that no trusted authority has signed"},
		"token of nobody": {secure, house, &SASL{Mechanism: MechanismOAuthBearer, Tokens: NewTokens(func(context.Context) (Token, error) {
			return Token{Value: "hush-token"}, nil
		})}, "does not accept the token (SASL OAUTHBEARER)"},
		"no password file": {secure, house, &SASL{Mechanism: MechanismPlain, User: "plain", Password: func() (string, error) {
			_, err := os.ReadFile("/none/password")
			return "", fmt.Errorf("kafka.sasl.password_file: %w", err)
		}}, "kafka.sasl.password_file: open /none/password: no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startSession(t, newTestClient(t, realConfig(test.brokers, test.tls, test.sasl)), always)
			s.Send(s.numbered(f.topic, 1, oneKey))
			if test.says == "" {
				s.acks(1)
				return
			}
			s.stalls(test.says, func(p pipeline.PartitionStatus) bool { return strings.Contains(p.Stall, test.says) })
			for _, p := range s.Status().Partitions {
				t.Log(p.Stall)
				if strings.Contains(p.Stall, "hush") || strings.Contains(p.Stall, "\n") {
					t.Errorf("the status shows a secret, or has several lines: %q", p.Stall)
				}
			}
		})
	}
}
