package kafka

import (
	"errors"
	"fmt"
	"strings"
)

// StopError ends a Producer for a cause that a human must look at before
// anything more is sent. It arrives as pipeline.Result.Err.
type StopError struct {
	// Topic and Partition name the place; Partition is -1 when the whole
	// topic is concerned, and Topic empty when it is all of them.
	Topic     string
	Partition int32
	// What happened, what it Means for the data, and what to do Next.
	What, Means, Next string
	// Cause is the error underneath, if there is one.
	Cause error
}

// Stopped says that a new session alone does not cure the cause.
func (e *StopError) Stopped() bool { return true }

// Unwrap returns the cause.
func (e *StopError) Unwrap() error { return e.Cause }

func (e *StopError) Error() string {
	place := ""
	if e.Topic != "" {
		place = fmt.Sprintf("topic %q: ", e.Topic)
	}
	if e.Partition >= 0 {
		place = fmt.Sprintf("topic %q partition %d: ", e.Topic, e.Partition)
	}
	return fmt.Sprintf("kafka: %s%s; %s; %s", place, e.What, e.Means, e.Next)
}

// toldError is an error in other words.
type toldError struct {
	text  string
	cause error
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Unwrap() error { return e.cause }

// noBrokerError has why each broker that was tried is of no use.
type noBrokerError struct{ failures []error }

func (e *noBrokerError) Error() string {
	texts := make([]string, len(e.failures))
	for i, failure := range e.failures {
		texts[i] = oneLine(failure)
	}
	text := "no broker can be used: " + strings.Join(texts, "; ")
	if !needsHuman(e) {
		text += "; check kafka.brokers and what is between: firewall, container network, VPN"
	}
	return text
}

// Unwrap returns the failures.
func (e *noBrokerError) Unwrap() []error { return e.failures }

// Errors that never leave the package except inside a status text.
var (
	// errNotSent: no byte of the request was written, so nothing of it can
	// have been appended.
	errNotSent = errors.New("not sent")
	// errLeaseLost: the lease ended before the first byte was written.
	errLeaseLost = fmt.Errorf("%w: the publisher's lease has ended", errNotSent)
	// errClosed: the producer was closed before the first byte was written.
	errClosed = fmt.Errorf("%w: the producer is closed", errNotSent)
	// errSuperseded: a later session of this process has started.
	errSuperseded = fmt.Errorf("%w: a later session of this process has taken over", errNotSent)
	// errIncomplete: the broker's answer lacks a partition of the request.
	errIncomplete = errors.New("the broker's answer lacks the partition")
)
