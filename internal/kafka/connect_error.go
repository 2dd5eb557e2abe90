package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/IBM/sarama"

	"github.com/cdcpub/cdcpub/internal/peercert"
)

// connectError: no connection could be made. Nothing of a request was sent. Its
// text is one sentence that begins with the address.
type connectError struct {
	text  string
	class class
	// passing: it may need a human, and may be over by itself soon.
	passing bool
	cause   error
}

func (e *connectError) Error() string { return e.text }

// Unwrap returns what the sentence was made of.
func (e *connectError) Unwrap() error { return e.cause }

// Is makes it an errNotSent.
func (e *connectError) Is(target error) bool { return target == errNotSent }

// unreachable: there is no connection to the address.
func unreachable(address string, cause error) error {
	cause = fmt.Errorf("%w: %w", errNotSent, cause)
	return &connectError{text: explain(address, cause), class: classRetry, cause: cause}
}

// mute: the connection is open, and nothing comes back on it.
func mute(address string, limit time.Duration) error {
	return &connectError{
		text:  fmt.Sprintf("%s takes the connection but does not answer in time (%v): it hangs, or the network swallows what is sent", address, limit),
		class: classRetry, cause: fmt.Errorf("%w: %w", errNotSent, os.ErrDeadlineExceeded),
	}
}

// needsOperator is a sentence about what only a human can cure.
func needsOperator(address string, cause error, format string, args ...any) error {
	return &connectError{text: address + " " + fmt.Sprintf(format, args...), class: classOperator, cause: cause}
}

// hungUp is a sentence about who closes the connection without a word. A wrong
// port must be corrected, but a proxy without its broker looks the same and passes
// by itself; and no password was sent, which could be tried too often.
func hungUp(address string, cause error, text string) error {
	return &connectError{text: address + " " + text, class: classOperator, passing: true, cause: cause}
}

// needsHuman tells if a failure to connect, of any broker, is one that only a
// human can cure.
func needsHuman(err error) bool {
	return anyBroker(err, func(e *connectError) bool { return e.class == classOperator })
}

// mayNotBeHurried tells if a failure to connect, of any broker, is one that only a
// human can cure, for certain.
func mayNotBeHurried(err error) bool {
	return anyBroker(err, func(e *connectError) bool { return e.class == classOperator && !e.passing })
}

func anyBroker(err error, is func(*connectError) bool) bool {
	switch e := err.(type) {
	case *connectError:
		return is(e)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(err error) bool { return anyBroker(err, is) })
	case interface{ Unwrap() error }:
		return anyBroker(e.Unwrap(), is)
	}
	return false
}

// unencrypted: the TLS handshake has failed.
func unencrypted(address string, cause error) error {
	var plain tls.RecordHeaderError
	if fault := peercert.Read(cause, time.Now()); fault != nil {
		return needsOperator(address, cause, "%s; %s", fault.Text, certificateCure(fault.Kind))
	}
	switch {
	case isGateClosed(cause):
		return cause
	case errors.As(cause, &plain):
		return needsOperator(address, cause, "does not speak TLS: use the broker's TLS listener, or take kafka.tls away")
	case isAlert(cause):
		return needsOperator(address, cause, "ends the TLS handshake (%v): %s", alertOf(cause), alertCure)
	case isClosed(cause):
		return hungUp(address, cause, "closes the connection in the middle of the TLS handshake: the port may be one without TLS, or of a proxy whose broker is down")
	case isTimeout(cause):
		return &connectError{text: address + " does not answer in the TLS handshake: the port may be one without TLS, or the broker hangs", class: classRetry, cause: cause}
	}
	return needsOperator(address, cause, "allows no TLS connection: %s", oneLine(cause))
}

const alertCure = "it may not accept the client certificate, or want one; see kafka.tls.cert_file and the broker's log"

func certificateCure(kind peercert.Kind) string {
	switch kind {
	case peercert.Untrusted:
		return "put the certificate of its authority into kafka.tls.ca_file"
	case peercert.Expired:
		return "renew it on the broker"
	case peercert.NotYetValid:
		return "correct the clock, or renew it on the broker"
	case peercert.WrongName:
		return "connect by a name that it has (kafka.brokers, and advertised.listeners of the brokers), or state the name in kafka.tls.server_name"
	}
	return "have another one made for the broker"
}

// unauthenticated: the broker does not let us in, or its first answer is not
// Kafka's.
func (d *dialer) unauthenticated(address string, cause error) error {
	var foreign *foreignError
	sasl := d.config.SASL
	code, answered := answerIn(cause)
	switch {
	case isGateClosed(cause):
		return cause
	case errors.As(cause, &foreign):
		return needsOperator(address, cause, "%v", foreign)
	case answered && sasl != nil:
		return d.refusedBySASL(address, code, cause)
	case isAlert(cause):
		return needsOperator(address, cause, "ends the TLS connection (%v): %s", alertOf(cause), alertCure)
	case isClosed(cause) && sasl == nil && d.config.TLS == nil:
		return hungUp(address, cause, "closes the connection at the first request: the port may want TLS (kafka.tls), or be of a proxy whose broker is down, or it is no Kafka broker")
	case isClosed(cause) && sasl != nil:
		return needsOperator(address, cause, "closes the connection while it is told who we are (SASL %s): it may not accept the user or its password (kafka.sasl), or have no SASL on this port, or be older than Kafka 1.0; see its log", *sasl)
	case isClosed(cause), isTimeout(cause):
		return &connectError{text: explain(address, cause), class: classRetry, cause: cause}
	case sasl != nil:
		return needsOperator(address, cause, "allows no connection with SASL %s: %s", *sasl, oneLine(cause))
	}
	return unreachable(address, cause)
}

// answerIn is the error code that the broker has answered with. sarama hides it
// from errors.As where the broker sent a text with it.
func answerIn(err error) (sarama.KError, bool) {
	var code sarama.KError
	if errors.Is(err, sarama.ErrSASLAuthenticationFailed) {
		return sarama.ErrSASLAuthenticationFailed, true
	}
	return code, errors.As(err, &code)
}

// refusedBySASL: the broker answered the exchange with an error.
func (d *dialer) refusedBySASL(address string, code sarama.KError, cause error) error {
	sasl := d.config.SASL
	switch code {
	case sarama.ErrUnsupportedSASLMechanism:
		mechanism := sasl.Mechanism
		if mechanism == MechanismAWSMSKIAM {
			mechanism += " (" + MechanismOAuthBearer + " on the wire)"
		}
		return needsOperator(address, cause, "does not offer SASL %s on this listener: correct kafka.sasl.mechanism, or sasl.enabled.mechanisms of the broker", mechanism)
	case sarama.ErrIllegalSASLState:
		return needsOperator(address, cause, "has no SASL on this listener: use one that has, or take kafka.sasl away")
	case sarama.ErrSASLAuthenticationFailed:
		if sasl.hasPassword() {
			return needsOperator(address, cause, "does not accept user %q with its password (SASL %s): check kafka.sasl.user and the password, and that the user exists for this mechanism", sasl.User, sasl.Mechanism)
		}
		sasl.Tokens.forget()
		return needsOperator(address, cause, "does not accept the token (SASL %s): %s", sasl.Mechanism, oneLine(cause))
	}
	return needsOperator(address, cause, "answers SASL %s with %s", *sasl, classify(code))
}

// silentRefusal explains a connection that ends at the first request on it:
// brokers give no other answer to who should have used SASL first.
func (d *dialer) silentRefusal(address string, cause error) error {
	var foreign *foreignError
	switch {
	case errors.As(cause, &foreign):
		return needsOperator(address, cause, "%v", foreign)
	case isAlert(cause):
		return needsOperator(address, cause, "ends the TLS connection (%v): %s", alertOf(cause), alertCure)
	case isClosed(cause) && d.config.SASL == nil:
		return hungUp(address, cause, "closes the connection at the first request: the port may want SASL, and kafka.sasl is not configured")
	}
	return &toldError{explain(address, cause), cause}
}

// isGateClosed: we ourselves kept the bytes back.
func isGateClosed(err error) bool { return errors.Is(err, errNotSent) }

func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func isTimeout(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

// isAlert tells if the other side ended TLS with an alert; crypto/tls marks
// those by the operation.
func isAlert(err error) bool { return alertOf(err) != nil }

func alertOf(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return op.Err
	}
	return nil
}
