package slotview

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/slotmon"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 8 << 20

// Ask asks the cdcpub whose HTTP server is at base for its /status and returns
// what it says of itself. What does not answer within timeout, or is not the
// publisher of the slot, is returned with the reason in Unanswered.
func Ask(ctx context.Context, base, slot string, timeout time.Duration) *slotmon.Publisher {
	answer := &slotmon.Publisher{Address: base}
	if parsed, err := url.Parse(base); err == nil {
		answer.Address = parsed.Redacted()
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	status, err := get(ctx, strings.TrimSuffix(base, "/")+"/status")
	switch {
	case ctx.Err() != nil:
		answer.Unanswered = fmt.Sprintf("no answer within %s", timeout)
	case err != nil:
		answer.Unanswered = err.Error()
	case status.State == "":
		answer.Unanswered = "what answers there publishes nothing; is http.advertise the address of `cdcpub run`?"
	case status.Slot != slot:
		answer.Unanswered = fmt.Sprintf("a cdcpub answers there that publishes from slot %s; correct http.advertise", human.Clean(status.Slot))
	default:
		answer.State, answer.Role, answer.Slot = status.State, status.Role, status.Slot
		if status.Stall != nil {
			answer.Stall, answer.StallSince = status.Stall.Cause, status.Stall.Since
		}
	}
	return answer
}

// innermost is the part of a failed request that says what is wrong; the rest
// repeats the address.
func innermost(err error) error {
	var number syscall.Errno
	var name *net.DNSError
	var request *url.Error
	switch {
	case errors.As(err, &number):
		return number
	case errors.As(err, &name):
		return name
	case errors.As(err, &request):
		return request.Err
	}
	return err
}

// publisherStatus is the part of /status that is read.
type publisherStatus struct {
	State string `json:"state"`
	Role  string `json:"role"`
	Slot  string `json:"slot"`
	Stall *struct {
		Cause string    `json:"cause"`
		Since time.Time `json:"since"`
	} `json:"stall"`
}

// get returns errors of one line, without the URL.
func get(ctx context.Context, address string) (*publisherStatus, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("http.advertise is not a URL")
	}
	request.Header.Set("Accept", "application/json")
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return nil, innermost(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it answers HTTP %d", response.StatusCode)
	}
	var status publisherStatus
	if err := json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&status); err != nil {
		return nil, errors.New("what answers there is no cdcpub: its /status is not JSON as expected")
	}
	return &status, nil
}
