package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

// The headers of a webhook delivery. See the package documentation.
const (
	timestampHeader = "X-Cdcpub-Timestamp"
	signatureHeader = "X-Cdcpub-Signature"
)

// Webhook is the sink that posts alerts as JSON. See the package documentation
// for the document and the signature.
type Webhook struct {
	endpoint   *endpoint
	secretFile string
}

// NewWebhook returns the sink for an http or https URL. Each delivery is signed
// with the content of secretFile, unless that is empty.
func NewWebhook(url, secretFile string) (*Webhook, error) {
	e, err := newEndpoint(url)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	return &Webhook{endpoint: e, secretFile: secretFile}, nil
}

// Name implements Sink.
func (w *Webhook) Name() string { return "webhook " + w.endpoint.name() }

// delivery is the body of a request.
type delivery struct {
	Version int             `json:"version"`
	Source  string          `json:"source"`
	Sent    time.Time       `json:"sent"`
	Alerts  []deliveryAlert `json:"alerts"`
}

type deliveryAlert struct {
	Status string `json:"status"`
	slotmon.Alert
	RunbookURL string `json:"runbook_url"`
}

// Send implements Sink.
func (w *Webhook) Send(ctx context.Context, alerts []slotmon.Alert) error {
	now := time.Now().UTC()
	document := delivery{Version: 1, Source: "cdcpub", Sent: now.Truncate(time.Millisecond)}
	for i := range alerts {
		a := &alerts[i]
		document.Alerts = append(document.Alerts, deliveryAlert{Status: statusOf(a), Alert: *a, RunbookURL: RunbookURL(a.ID)})
	}
	body, err := json.Marshal(document)
	if err != nil {
		return fmt.Errorf("make the JSON document: %w", err)
	}
	header := http.Header{}
	header.Set(timestampHeader, strconv.FormatInt(now.Unix(), 10))
	if w.secretFile != "" {
		secret, err := readSecret(w.secretFile)
		if err != nil {
			return fmt.Errorf("slot_monitor.webhook.secret_file: %w", err)
		}
		header.Set(signatureHeader, sign(secret, header.Get(timestampHeader), body))
	}
	return w.endpoint.post(ctx, w.endpoint.url, body, header)
}

func sign(secret []byte, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// readSecret reads a key from a file that editors may have ended with a newline.
func readSecret(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	secret := bytes.TrimRight(text, "\r\n")
	if len(secret) == 0 {
		return nil, fmt.Errorf("%s is empty", path)
	}
	return secret, nil
}
