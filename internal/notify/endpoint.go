package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

const (
	// maxAnswer is how much of an answer is read, shownAnswer how much of it an
	// error repeats.
	maxAnswer   = 4096
	shownAnswer = 200
)

// ResponseError is an HTTP answer other than 2xx.
type ResponseError struct {
	StatusCode int
	// Body is how its body begins, on one line and without secrets.
	Body string
}

func (e *ResponseError) Error() string {
	text := fmt.Sprintf("answered %d %s", e.StatusCode, http.StatusText(e.StatusCode))
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// refused tells if the content, or who sent it, is at fault and not the moment.
func (e *ResponseError) refused() bool {
	return e.StatusCode >= 400 && e.StatusCode < 500 &&
		e.StatusCode != http.StatusRequestTimeout && e.StatusCode != http.StatusTooManyRequests
}

// transportError is why there was no answer, in words without secrets.
type transportError struct {
	text string
	err  error
}

func (e *transportError) Error() string { return e.text }
func (e *transportError) Unwrap() error { return e.err }

// endpoint is a URL to post to. All of it but scheme and host may be secret.
type endpoint struct {
	url    *url.URL
	client *http.Client
	// hide replaces what may be secret in texts that come from elsewhere.
	hide *strings.Replacer
}

// newEndpoint is for a URL that the configuration has found to be valid. Its
// error repeats nothing of it.
func newEndpoint(raw string) (*endpoint, error) {
	parsed, err := url.Parse(raw)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return nil, errors.New("the URL of an alert sink is not http:// or https:// and a host")
	}
	return &endpoint{url: parsed, hide: hiding(parsed), client: &http.Client{
		Transport: &http.Transport{
			Proxy:       http.ProxyFromEnvironment,
			DialContext: (&net.Dialer{Timeout: sendTimeout}).DialContext,
			// Deliveries are rare. A connection that was kept would often be
			// found dead, and a new one follows a changed address.
			DisableKeepAlives:      true,
			TLSHandshakeTimeout:    sendTimeout,
			MaxResponseHeaderBytes: 64 << 10,
		},
		// A redirect may lead to whom the content is not meant for.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// name is what may be shown of the URL.
func (e *endpoint) name() string { return e.url.Scheme + "://" + e.url.Host }

// post sends one JSON document to a URL below the endpoint's. It returns nil
// for an answer of 2xx only.
func (e *endpoint) post(ctx context.Context, to *url.URL, body []byte, header http.Header) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to.String(), bytes.NewReader(body))
	if err != nil {
		return &transportError{"no request can be made for it", err}
	}
	request.Header = header
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "cdcpub")
	response, err := e.client.Do(request)
	if err != nil {
		return e.noAnswer(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode >= 200 && response.StatusCode < 300 {
		return nil
	}
	// What cannot be read of the answer would only have been shown.
	answer, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return &ResponseError{StatusCode: response.StatusCode, Body: cut(e.clean(string(answer)), shownAnswer)}
}

// noAnswer leaves out what net/http adds: the URL.
func (e *endpoint) noAnswer(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &transportError{fmt.Sprintf("no answer within %s", sendTimeout.Round(time.Second)), err}
	}
	return &transportError{cut(e.clean(err.Error()), 2*shownAnswer), err}
}

// clean makes a foreign text fit for one line of an error.
func (e *endpoint) clean(text string) string {
	printable := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, e.hide.Replace(strings.ToValidUTF8(text, " ")))
	return strings.Join(strings.Fields(printable), " ")
}

// cut shortens a text to at most so many bytes, at the beginning of a rune.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
