// Package notify tells people about alerts: it delivers what slotmon.Alerts
// raises, changes and resolves to sinks.
//
// A Sink is one place that alerts go to, and sends once: the log (Log), a
// webhook (Webhook), or one member of an Alertmanager cluster (Alertmanager).
// The Deliverer does all the rest, with one goroutine for each sink, so that a
// sink that fails or hangs delays neither the caller nor another sink.
//
// # What is promised
//
// The newest state of every alert reaches every sink at least once. A state
// that is overtaken while it waits is not sent: an alert that is raised and
// resolved while a sink is down arrives as resolved only, with the times of
// both. That state is sent although the raised one was not, because a try whose
// answer was lost may have arrived. For one alert a sink never gets an older
// state behind a newer one, but for what the network delays.
//
// A failed delivery is tried again without limit, after 1s at first and then
// after twice as long each time, up to about 30s, while the state is the newest
// one. Each try has 10s. Where an answer says that the content is at fault
// (4xx), alerts go one by one, and the refused ones behind the others.
//
// Waiting states are in memory. A process that ends tries once more in Close;
// what is then left is lost, and so is the memory of what was raised. The next
// process raises again what is still so, and resolves nothing of what is not:
// a webhook does not hear of that. Alertmanager does, because alerts that are
// not repeated end there by themselves.
//
// # Webhook
//
// A POST with Content-Type application/json; any 2xx answer accepts it, and
// redirects are not followed. The body is
//
//	{
//	  "version": 1,
//	  "source": "cdcpub",
//	  "sent": "2026-01-02T03:04:05.678Z",
//	  "alerts": [
//	    {
//	      "status": "raised",
//	      "server": "db.internal:5432/shop",
//	      "slot": "cdcpub",
//	      "id": "retained_wal",
//	      "severity": "warning",
//	      "since": "2026-01-02T03:03:30Z",
//	      "raised": "2026-01-02T03:04:00Z",
//	      "summary": "...",
//	      "cause": "...",
//	      "cure": "...",
//	      "runbook_url": "..."
//	    }
//	  ]
//	}
//
// status is raised or resolved; a resolved alert has the member resolved, a
// time. severity is warning or critical, and the same alert is sent again as
// raised when it changes. slot is absent where the whole server is meant; cause
// and cure are absent where there is none. Server, slot and id together
// identify an alert. Repeats are possible, and a receiver that cares drops what
// has an earlier sent than it has seen. version changes when a member changes
// its meaning or goes; new members may come at any time.
//
// With a secret, each request is signed. To verify one:
//
//  1. Take the header X-Cdcpub-Timestamp, in seconds since 1970 UTC, and refuse
//     the request if it is more than five minutes away from the present: that
//     is what makes a recorded request useless.
//  2. Compute HMAC-SHA256 with the secret as the key over the bytes of that
//     header, a full stop, and the bytes of the body as they came.
//  3. Compare it, in constant time, with the header X-Cdcpub-Signature, which
//     is "sha256=" and the HMAC in lower-case hexadecimal.
//
// The secret is the content of its file without line ends behind it. The file
// is read for each request; if that fails, nothing is sent unsigned.
//
// # Alertmanager
//
// A POST to /api/v2/alerts of each member, as the Alertmanager documentation
// ("High Availability") asks for. The labels are alertname (CdcpubSlotLost for
// slot_lost), id, severity, server and slot; the annotations summary,
// description (the cause), cure and runbook_url. startsAt is when the alert was
// raised.
//
// Alerts that are raised are sent again each minute, with an endsAt five
// minutes away: Alertmanager remembers nothing over a restart that it cannot
// read from its disk, and an alert whose sender died must not stay for ever.
// This is what Prometheus does, and like there resolve_timeout plays no part.
// Since the severity is a label, a changed one is another alert to
// Alertmanager, and the one with the former severity is resolved in the same
// request.
package notify
