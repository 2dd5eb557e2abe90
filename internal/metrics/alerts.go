package metrics

import "github.com/cdcpub/cdcpub/internal/monitor"

type alertFamilies struct{ alert, deliveries, failing *family }

func newAlertFamilies(c *collector) alertFamilies {
	return alertFamilies{
		alert: c.gauge("alert",
			"1 for each alert that this cdcpub has raised and not resolved, by its id in the runbook: a finding that has lasted. Severity is warning or critical; slot is empty for an alert about the server. Absent when there is none.", "server", "slot", "id", "severity"),
		deliveries: c.counter("alert_deliveries_total",
			"Deliveries to the sink, of one or several alerts that were raised, changed or resolved, by result: sent or failed. A delivery that is tried again counts again.", "sink", "result"),
		failing: c.gauge("alert_sink_failing",
			"1 if the last delivery to the sink failed, else 0.", "sink"),
	}
}

func (f *alertFamilies) collect(s *scrape, snapshot *monitor.Snapshot) {
	for i := range snapshot.Alerts {
		a := &snapshot.Alerts[i]
		if a.Resolved.IsZero() {
			s.put(f.alert, 1, a.Server, a.Slot, string(a.ID), severity(a.Severity))
		}
	}
	for i := range snapshot.Sinks {
		sink := &snapshot.Sinks[i]
		s.put(f.deliveries, float64(sink.Sent), sink.Name, "sent")
		s.put(f.deliveries, float64(sink.Failed), sink.Name, "failed")
		s.put(f.failing, truth(sink.LastError != ""), sink.Name)
	}
}
