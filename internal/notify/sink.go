package notify

import (
	"context"
	"strings"
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

// Sink is one place that alerts go to. A Deliverer calls Send from one
// goroutine only.
type Sink interface {
	// Name says what and where the sink is, without secrets. It never changes.
	Name() string
	// Send delivers the present state of some alerts, at most one for each key.
	// It returns nil only if the sink has accepted all of them. It ends soon
	// after ctx does. The error holds no secret.
	Send(ctx context.Context, alerts []slotmon.Alert) error
}

// Repeater is a Sink that wants the alerts that are raised again and again.
type Repeater interface {
	Sink
	// Repeat is the time from one repetition to the next, more than 0.
	Repeat() time.Duration
}

// The two states of an alert.
const (
	statusRaised   = "raised"
	statusResolved = "resolved"
)

func statusOf(a *slotmon.Alert) string {
	if a.Resolved.IsZero() {
		return statusRaised
	}
	return statusResolved
}

// AlertName is what Prometheus and Alertmanager call an alert: CdcpubSlotLost
// for slot_lost.
func AlertName(id slotmon.FindingID) string {
	name := "Cdcpub"
	for word := range strings.SplitSeq(string(id), "_") {
		if word != "" {
			name += strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return name
}

// RunbookURL is the section of the runbook about an alert.
func RunbookURL(id slotmon.FindingID) string {
	return "https://github.com/cdcpub/cdcpub/blob/main/docs/runbook.md#" + string(id)
}
