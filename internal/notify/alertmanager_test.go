package notify

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/cdcpub/cdcpub/slotmon"
)

func postables(t *testing.T, body []byte) []postableAlert {
	t.Helper()
	var all []postableAlert
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return all
}

func TestAlertmanagerGetsLabelsAnnotationsAndTimes(t *testing.T) {
	server, requests := receiver(t, 200, "")
	m := mustAlertmanager(t, server.URL[:7]+"u:p@"+server.URL[7:]+"/prefix/")
	a := example()
	whole := example()
	whole.Slot, whole.Cause, whole.Cure, whole.ID = "", "", "", slotmon.ServerUnreachable
	before := time.Now()
	if err := m.Send(t.Context(), []slotmon.Alert{a, whole}); err != nil {
		t.Fatal(err)
	}
	all := requests()
	if len(all) != 1 || all[0].path != "POST /prefix/api/v2/alerts" || all[0].header.Get("Content-Type") != "application/json" ||
		all[0].user != "u" || all[0].password != "p" {
		t.Fatalf("requests: %+v", all)
	}
	got := postables(t, all[0].body)
	if len(got) != 2 {
		t.Fatalf("%d alerts:\n%s", len(got), all[0].body)
	}
	const runbook = "https://github.com/cdcpub/cdcpub/blob/main/docs/runbook.md#"
	if want := map[string]string{"alertname": "CdcpubRetainedWal", "id": "retained_wal", "severity": "warning",
		"server": "db.internal:5432/shop", "slot": "cdcpub"}; !maps.Equal(got[0].Labels, want) {
		t.Errorf("labels = %v", got[0].Labels)
	}
	if want := map[string]string{"summary": "S", "description": "C", "cure": "D", "runbook_url": runbook + "retained_wal"}; !maps.Equal(got[0].Annotations, want) {
		t.Errorf("annotations = %v", got[0].Annotations)
	}
	if want := map[string]string{"alertname": "CdcpubServerUnreachable", "id": "server_unreachable", "severity": "warning",
		"server": "db.internal:5432/shop"}; !maps.Equal(got[1].Labels, want) {
		t.Errorf("labels of a server = %v", got[1].Labels)
	}
	if want := map[string]string{"summary": "S", "runbook_url": runbook + "server_unreachable"}; !maps.Equal(got[1].Annotations, want) {
		t.Errorf("annotations of a server = %v", got[1].Annotations)
	}
	if !got[0].StartsAt.Equal(a.Raised) || got[0].EndsAt.Before(before.Add(endsAfter)) || got[0].EndsAt.After(time.Now().Add(endsAfter)) {
		t.Errorf("starts %s, ends %s", got[0].StartsAt, got[0].EndsAt)
	}
	if got[0].GeneratorURL != "http://127.0.0.1:9477" {
		t.Errorf("generatorURL = %q", got[0].GeneratorURL)
	}
}

// lostAnswer stands for a request that took effect and whose answer did not.
const lostAnswer = http.StatusGatewayTimeout

// cluster is an Alertmanager by its memory: what is firing is what has an
// endsAt that is still to come.
type cluster struct {
	mu     sync.Mutex
	alerts map[string]time.Time // by alertname, slot and severity
	status int
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, err := io.ReadAll(r.Body)
	var all []postableAlert
	if err != nil || json.Unmarshal(body, &all) != nil || r.URL.Path != "/api/v2/alerts" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.WriteHeader(c.status)
	if c.status != http.StatusOK && c.status != lostAnswer {
		return
	}
	for _, a := range all {
		c.alerts[a.Labels["alertname"]+" "+a.Labels["slot"]+" "+a.Labels["severity"]] = a.EndsAt
	}
}

// restart forgets everything and answers with the status from now on.
func (c *cluster) restart(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alerts, c.status = map[string]time.Time{}, status
}

// answer changes the status of the answers.
func (c *cluster) answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

func (c *cluster) firing(t *testing.T, want ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for name, ends := range c.alerts {
		if ends.After(time.Now()) {
			n++
			t.Logf("firing: %s", name)
		}
	}
	for _, name := range want {
		if ends := c.alerts[name]; !ends.After(time.Now()) {
			t.Errorf("%s is not firing", name)
		}
	}
	if n != len(want) {
		t.Errorf("%d alerts are firing, want %d", n, len(want))
	}
}

// pipes is a network within the process, so that time can be synthetic.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// withCluster runs a test with a Deliverer to one Alertmanager.
func withCluster(t *testing.T, test func(t *testing.T, c *cluster, d *Deliverer)) {
	synctest.Test(t, func(t *testing.T) {
		c := &cluster{}
		c.restart(http.StatusOK)
		network := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
		server := &http.Server{Handler: c}
		served := make(chan error, 1)
		go func() { served <- server.Serve(network) }()
		m := mustAlertmanager(t, "http://am:9093")
		m.endpoint.client.Transport.(*http.Transport).DialContext = network.dial
		d := Start(zap.NewNop(), m)
		test(t, c, d)
		closeNow(t, d)
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		<-served
	})
}

func TestAlertmanagerHasWhatIsRaisedAsLongAsItIsRaised(t *testing.T) {
	withCluster(t, func(t *testing.T, c *cluster, d *Deliverer) {
		alert := raised("s", slotmon.RetainedWAL, slotmon.Warning)
		d.Changed([]slotmon.Alert{alert})
		synctest.Wait()
		c.firing(t, "CdcpubRetainedWal s warning")
		time.Sleep(time.Hour)
		c.firing(t, "CdcpubRetainedWal s warning")
		d.Changed([]slotmon.Alert{resolved(alert)})
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		c.firing(t)
		time.Sleep(time.Hour)
		c.firing(t)
	})
}

func TestAnAlertmanagerThatRestartsGetsActiveAlertsAgain(t *testing.T) {
	withCluster(t, func(t *testing.T, c *cluster, d *Deliverer) {
		stays, ends := raised("s", slotmon.RetainedWAL, slotmon.Warning), raised("t", slotmon.SlotLost, slotmon.Critical)
		d.Changed([]slotmon.Alert{stays, ends})
		synctest.Wait()
		c.firing(t, "CdcpubRetainedWal s warning", "CdcpubSlotLost t critical")
		c.restart(http.StatusServiceUnavailable)
		time.Sleep(10 * time.Minute)
		d.Changed([]slotmon.Alert{resolved(ends)})
		time.Sleep(time.Minute)
		c.restart(http.StatusOK)
		time.Sleep(2 * longestPause)
		c.firing(t, "CdcpubRetainedWal s warning")
		c.restart(http.StatusOK)
		time.Sleep(repeatEvery)
		synctest.Wait()
		c.firing(t, "CdcpubRetainedWal s warning")
	})
}

func TestAnAlertHasOneSeverityAtATimeInAlertmanager(t *testing.T) {
	withCluster(t, func(t *testing.T, c *cluster, d *Deliverer) {
		step := func(alert slotmon.Alert) {
			d.Changed([]slotmon.Alert{alert})
			time.Sleep(time.Second)
			synctest.Wait()
		}
		step(raised("s", slotmon.RetainedWAL, slotmon.Warning))
		critical := raised("s", slotmon.RetainedWAL, slotmon.Critical)
		step(critical)
		c.firing(t, "CdcpubRetainedWal s critical")
		step(raised("s", slotmon.RetainedWAL, slotmon.Warning))
		c.firing(t, "CdcpubRetainedWal s warning")
		c.answer(http.StatusInternalServerError)
		step(critical)
		c.firing(t, "CdcpubRetainedWal s warning")
		c.answer(http.StatusOK)
		time.Sleep(2 * longestPause)
		c.firing(t, "CdcpubRetainedWal s critical")
		c.answer(lostAnswer)
		step(raised("s", slotmon.RetainedWAL, slotmon.Warning))
		c.answer(http.StatusOK)
		step(resolved(critical))
		time.Sleep(2 * longestPause)
		c.firing(t)
	})
}

func TestAlertsEndInAlertmanagerWhenTheirSenderDies(t *testing.T) {
	withCluster(t, func(t *testing.T, c *cluster, d *Deliverer) {
		d.Changed([]slotmon.Alert{raised("s", slotmon.RetainedWAL, slotmon.Warning)})
		synctest.Wait()
		closeNow(t, d)
		time.Sleep(endsAfter - time.Second)
		c.firing(t, "CdcpubRetainedWal s warning")
		time.Sleep(time.Second)
		c.firing(t)
	})
}
