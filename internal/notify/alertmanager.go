package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

const (
	// repeatEvery is how often Alertmanager gets what is raised.
	repeatEvery = time.Minute
	// endsAfter is when an alert ends that is not repeated. Four repetitions
	// may fail, and a publisher that restarts has raised its alerts again.
	endsAfter = 5 * time.Minute
)

// Alertmanager is the sink for one member of a Prometheus Alertmanager cluster,
// by its API v2. See the package documentation for labels and annotations.
type Alertmanager struct {
	endpoint *endpoint
	source   string
	// shown are the severities under which the member may have an alert. It
	// belongs to the goroutine that calls Send.
	shown map[slotmon.AlertKey]severities
}

// severities are those that an alert has as a label.
type severities struct{ warning, critical bool }

// NewAlertmanager returns the sink for the member with this base URL, http or
// https. source is the page that Alertmanager links to, empty for none.
func NewAlertmanager(url, source string) (*Alertmanager, error) {
	e, err := newEndpoint(url)
	if err != nil {
		return nil, fmt.Errorf("alertmanager: %w", err)
	}
	return &Alertmanager{endpoint: e, source: source, shown: map[slotmon.AlertKey]severities{}}, nil
}

// Name implements Sink.
func (m *Alertmanager) Name() string { return "alertmanager " + m.endpoint.name() }

// Repeat implements Repeater.
func (m *Alertmanager) Repeat() time.Duration { return repeatEvery }

// postableAlert is as in Alertmanager's api/v2/openapi.yaml.
type postableAlert struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// Send implements Sink.
func (m *Alertmanager) Send(ctx context.Context, alerts []slotmon.Alert) error {
	now := time.Now()
	var all []postableAlert
	for i := range alerts {
		all = append(all, m.postable(&alerts[i], now)...)
		m.mayShow(&alerts[i])
	}
	body, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("make the JSON document: %w", err)
	}
	to := m.endpoint.url.JoinPath("api", "v2", "alerts")
	if err := m.endpoint.post(ctx, to, body, http.Header{}); err != nil {
		return err
	}
	for i := range alerts {
		m.shows(&alerts[i])
	}
	return nil
}

// postable is the alert as Alertmanager wants it, and the end of the one with
// the other severity, which it was before.
func (m *Alertmanager) postable(a *slotmon.Alert, now time.Time) []postableAlert {
	ends := a.Resolved
	if ends.IsZero() {
		ends = now.Add(endsAfter)
	}
	all := []postableAlert{m.labelled(a, a.Severity, ends)}
	switch shown := m.shown[a.Key()]; {
	case shown.warning && a.Severity != slotmon.Warning:
		all = append(all, m.labelled(a, slotmon.Warning, now))
	case shown.critical && a.Severity == slotmon.Warning:
		all = append(all, m.labelled(a, slotmon.Critical, now))
	}
	return all
}

func (m *Alertmanager) labelled(a *slotmon.Alert, severity slotmon.Severity, ends time.Time) postableAlert {
	p := postableAlert{
		Labels: map[string]string{
			"alertname": AlertName(a.ID), "id": string(a.ID), "severity": severity.String(),
			"server": a.Server, "slot": a.Slot,
		},
		Annotations: map[string]string{
			"summary": a.Summary, "description": a.Cause, "cure": a.Cure, "runbook_url": RunbookURL(a.ID),
		},
		StartsAt: a.Raised, EndsAt: ends, GeneratorURL: m.source,
	}
	for _, texts := range []map[string]string{p.Labels, p.Annotations} {
		for name, text := range texts {
			if text == "" {
				delete(texts, name)
			}
		}
	}
	if p.EndsAt.Before(p.StartsAt) { // a clock was set back
		p.EndsAt = p.StartsAt
	}
	return p
}

// mayShow notes what the member has if it gets the next request.
func (m *Alertmanager) mayShow(a *slotmon.Alert) {
	shown := m.shown[a.Key()]
	if a.Severity == slotmon.Warning {
		shown.warning = true
	} else {
		shown.critical = true
	}
	m.shown[a.Key()] = shown
}

// shows notes what the member has now that it got the request.
func (m *Alertmanager) shows(a *slotmon.Alert) {
	delete(m.shown, a.Key())
	if a.Resolved.IsZero() {
		m.mayShow(a)
	}
}
