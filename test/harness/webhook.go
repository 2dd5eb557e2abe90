package harness

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

// Webhook is a receiver of alerts that keeps what it gets. Its methods are safe
// from any goroutine.
type Webhook struct {
	URL string

	mu     sync.Mutex
	alerts []Alert
}

// Alert is one alert of a delivery.
type Alert struct {
	Arrived              time.Time
	Status               string // raised, resolved
	Server, Slot         string
	ID                   slotmon.FindingID
	Severity             slotmon.Severity
	Since, Raised        time.Time
	Summary, Cause, Cure string
}

// NewWebhook listens on loopback until the test's end.
func NewWebhook(t testing.TB) *Webhook {
	w := &Webhook{}
	server := httptest.NewServer(http.HandlerFunc(w.receive))
	t.Cleanup(server.Close)
	w.URL = server.URL
	return w
}

func (w *Webhook) receive(response http.ResponseWriter, request *http.Request) {
	var delivery struct {
		Version int
		Alerts  []Alert
	}
	if err := json.NewDecoder(request.Body).Decode(&delivery); err != nil || delivery.Version != 1 {
		http.Error(response, "want version 1", http.StatusBadRequest)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, alert := range delivery.Alerts {
		alert.Arrived = time.Now()
		w.alerts = append(w.alerts, alert)
	}
}

// Count is how many alerts have arrived: where the next Find may begin.
func (w *Webhook) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.alerts)
}

// Find returns the first alert from the index on that matches, and the index
// behind it.
func (w *Webhook) Find(from int, match func(Alert) bool) (found Alert, next int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := from; i < len(w.alerts); i++ {
		if match(w.alerts[i]) {
			return w.alerts[i], i + 1, true
		}
	}
	return Alert{}, from, false
}

// String lists what has arrived, a line each.
func (w *Webhook) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	for _, a := range w.alerts {
		fmt.Fprintf(&b, "%s %s %s %s %s: %s\n", a.Arrived.Format("15:04:05.000"), a.Status, a.Severity, a.Slot, a.ID, a.Summary)
	}
	return b.String()
}
