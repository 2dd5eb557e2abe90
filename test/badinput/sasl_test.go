package badinput

import (
	"net/http"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// asking is usual with kafka.sasl.
func asking(sasl string) string {
	return with("kafka:\n", "kafka:\n  sasl: {"+sasl+"}\n")
}

// guarded puts a broker in the place that wants SASL.
func guarded(s *stand) {
	cluster := broker(s.t, kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "publisher", secret), kfake.Superuser("SCRAM-SHA-256", "publisher", secret))
	s.replace = append([]string{"KAFKA:9092", cluster.ListenAddrs()[0]}, s.replace...)
	s.kafka = cluster
}

// refusing is guarded, and answers a wrong password as Apache Kafka does; kfake
// itself hangs up.
func refusing(s *stand) {
	guarded(s)
	s.kafka.ControlKey(int16(kmsg.SASLAuthenticate), func(request kmsg.Request) (kmsg.Response, error, bool) {
		s.kafka.KeepControl()
		answer := request.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		text := "Authentication failed"
		answer.ErrorCode, answer.ErrorMessage = kerr.SaslAuthenticationFailed.Code, &text
		return answer, nil, true
	})
}

// sasl are mistakes in telling Kafka who we are.
var sasl = []mistake{
	{name: "PLAIN, a wrong password", config: asking("mechanism: PLAIN, user: publisher, password: guess"), first: refusing, code: stays, names: []string{"publisher", "PLAIN", "kafka.sasl.user"}},
	{name: "PLAIN, a wrong password, check", args: checking, config: asking("mechanism: PLAIN, user: publisher, password: guess"), first: refusing, code: 3, names: []string{"publisher", "PLAIN", "kafka.sasl.user"}},
	{name: "SCRAM-SHA-256, a wrong password", config: asking("mechanism: SCRAM-SHA-256, user: publisher, password: guess"), first: refusing, code: stays, names: []string{"publisher", "SCRAM-SHA-256", "kafka.sasl.user"}},
	{name: "SCRAM-SHA-512, a user that exists for another mechanism", config: asking("mechanism: SCRAM-SHA-512, user: publisher, password: SECRET"), first: refusing, code: stays, names: []string{"publisher", "SCRAM-SHA-512", "mechanism"}},
	{name: "OAUTHBEARER, nobody at the token endpoint", config: asking("mechanism: OAUTHBEARER, oauth: {token_url: 'http://CLOSED/token', client_id: publisher, client_secret: SECRET}"), first: guarded, code: stays, names: []string{"token endpoint", "kafka.sasl.oauth.token_url"}},
	{name: "OAUTHBEARER, a wrong client secret", config: asking("mechanism: OAUTHBEARER, oauth: {token_url: 'http://TOKENS/token', client_id: publisher, client_secret: guess}"), code: stays, names: []string{"token endpoint", "kafka.sasl.oauth.client_id"}, first: func(s *stand) {
		guarded(s)
		s.replace = append([]string{"TOKENS", web(s, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error": "invalid_client"}`)) // the client may have gone
		}))}, s.replace...)
	}},
	{name: "PLAIN, a wrong password, and the broker hangs up", config: asking("mechanism: PLAIN, user: publisher, password: guess"), first: guarded, code: stays, names: []string{"publisher", "PLAIN", "kafka.sasl"}},
	{name: "none, where the broker wants one", event: "kafka_unreachable", code: stays, names: []string{"kafka.sasl"}, first: func(s *stand) {
		guarded(s)
		s.insert("aggregate_type, aggregate_id, payload", "'order', '1', '{}'")
	}},
	{name: "one, where the broker has none", config: asking("mechanism: PLAIN, user: publisher, password: SECRET"), code: stays, names: []string{"kafka.sasl"}},
}
