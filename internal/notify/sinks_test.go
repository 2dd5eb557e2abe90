package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cdcpub/cdcpub/slotmon"
)

// received is one request as it came.
type received struct {
	path, user, password string
	header               http.Header
	body                 []byte
}

// receiver answers every request with a status and a body.
func receiver(t *testing.T, status int, answer string) (*httptest.Server, func() []received) {
	t.Helper()
	requests := make(chan received, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		user, password, _ := r.BasicAuth()
		requests <- received{r.Method + " " + r.URL.RequestURI(), user, password, r.Header, body}
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server, func() []received {
		var all []received
		for len(requests) > 0 {
			all = append(all, <-requests)
		}
		return all
	}
}

func mustWebhook(t *testing.T, url, secretFile string) *Webhook {
	t.Helper()
	w, err := NewWebhook(url, secretFile)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func mustAlertmanager(t *testing.T, url string) *Alertmanager {
	t.Helper()
	m, err := NewAlertmanager(url, "http://127.0.0.1:9477")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func example() slotmon.Alert {
	at := func(s string) time.Time {
		parsed, err := time.Parse(time.RFC3339, s)
		if err != nil {
			panic(err)
		}
		return parsed
	}
	return slotmon.Alert{Server: "db.internal:5432/shop", Slot: "cdcpub", ID: slotmon.RetainedWAL, Severity: slotmon.Warning,
		Since: at("2026-01-02T03:03:30Z"), Raised: at("2026-01-02T03:04:00Z"), Summary: "S", Cause: "C", Cure: "D"}
}

func decode(t *testing.T, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return v
}

func TestWebhookPostsTheDocumentedJSON(t *testing.T) {
	server, requests := receiver(t, 204, "")
	ended := example()
	ended.Slot, ended.Cause, ended.Cure = "", "", ""
	ended.ID, ended.Severity = slotmon.ServerUnreachable, slotmon.Critical
	ended.Resolved = ended.Raised.Add(time.Minute)
	before := time.Now()
	if err := mustWebhook(t, server.URL+"/hook?a=b", "").Send(t.Context(), []slotmon.Alert{example(), ended}); err != nil {
		t.Fatal(err)
	}
	all := requests()
	if len(all) != 1 || all[0].path != "POST /hook?a=b" || all[0].header.Get("Content-Type") != "application/json" {
		t.Fatalf("requests: %+v", all)
	}
	document := decode(t, all[0].body).(map[string]any)
	sent, err := time.Parse(time.RFC3339, document["sent"].(string))
	if err != nil || sent.Before(before.Add(-time.Second)) || sent.After(time.Now()) {
		t.Errorf("sent = %v", document["sent"])
	}
	delete(document, "sent")
	const runbook = "https://github.com/cdcpub/cdcpub/blob/main/docs/runbook.md#"
	want := decode(t, []byte(`{"version": 1, "source": "cdcpub", "alerts": [
		{"status": "raised", "server": "db.internal:5432/shop", "slot": "cdcpub", "id": "retained_wal", "severity": "warning",
		 "since": "2026-01-02T03:03:30Z", "raised": "2026-01-02T03:04:00Z", "summary": "S", "cause": "C", "cure": "D",
		 "runbook_url": "`+runbook+`retained_wal"},
		{"status": "resolved", "server": "db.internal:5432/shop", "id": "server_unreachable", "severity": "critical",
		 "since": "2026-01-02T03:03:30Z", "raised": "2026-01-02T03:04:00Z", "resolved": "2026-01-02T03:05:00Z", "summary": "S",
		 "runbook_url": "`+runbook+`server_unreachable"}]}`))
	if !reflect.DeepEqual(any(document), want) {
		t.Errorf("body:\n%s", all[0].body)
	}
	if got := all[0].header.Get("X-Cdcpub-Signature"); got != "" {
		t.Errorf("signed without a secret: %s", got)
	}
}

// verified is written after the package documentation alone.
func verified(r received, secret string, now time.Time) error {
	timestamp := r.header.Get("X-Cdcpub-Timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return err
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > 5*time.Minute || age < -5*time.Minute {
		return fmt.Errorf("is %s old", age)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "%s.%s", timestamp, r.body)
	digest, found := strings.CutPrefix(r.header.Get("X-Cdcpub-Signature"), "sha256=")
	if want := hex.EncodeToString(mac.Sum(nil)); !found || !hmac.Equal([]byte(digest), []byte(want)) {
		return errors.New("has a wrong signature")
	}
	return nil
}

func TestWebhookSignaturesVerifyAndFollowTheSecretFile(t *testing.T) {
	server, requests := receiver(t, 200, "")
	file := filepath.Join(t.TempDir(), "secret")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first secret\n")
	w := mustWebhook(t, server.URL, file)
	send := func() received {
		if err := w.Send(t.Context(), []slotmon.Alert{example()}); err != nil {
			t.Fatal(err)
		}
		return requests()[0]
	}
	first := send()
	if err := verified(first, "first secret", time.Now()); err != nil {
		t.Error(err)
	}
	write("second secret")
	if err := verified(send(), "second secret", time.Now()); err != nil {
		t.Errorf("after rotation: %v", err)
	}
	if verified(first, "second secret", time.Now()) == nil || verified(first, "first secret", time.Now().Add(time.Hour)) == nil {
		t.Error("another secret, or an old request, verifies")
	}
	forged := first
	forged.header = first.header.Clone()
	forged.header.Set("X-Cdcpub-Timestamp", strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10))
	if verified(forged, "first secret", time.Now().Add(time.Hour)) == nil {
		t.Error("a request with a new timestamp verifies")
	}
	forged = first
	forged.body = append([]byte(" "), first.body...)
	if verified(forged, "first secret", time.Now()) == nil {
		t.Error("a changed body verifies")
	}
}

func TestWebhookSendsNothingUnsignedWhenTheSecretCannotBeRead(t *testing.T) {
	server, requests := receiver(t, 200, "")
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"/none/secret": "slot_monitor.webhook.secret_file: open /none/secret: no such file or directory",
		empty:          "slot_monitor.webhook.secret_file: " + empty + " is empty",
	} {
		err := mustWebhook(t, server.URL, file).Send(t.Context(), []slotmon.Alert{example()})
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if n := len(requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestAnswersOtherThanSuccessAreErrorsWithTheirBeginning(t *testing.T) {
	for _, test := range []struct {
		status  int
		answer  string
		want    string
		refused bool
	}{
		{500, "database\n\tis\x00 down", "answered 500 Internal Server Error: database is down", false},
		{302, "", "answered 302 Found", false},
		{308, "moved", "answered 308 Permanent Redirect: moved", false},
		{400, strings.Repeat("ä", 300), "answered 400 Bad Request: " + strings.Repeat("ä", 100) + "...", true},
		{429, "slow down", "answered 429 Too Many Requests: slow down", false},
		{404, "\xff\xfe", "answered 404 Not Found", true},
		{502, strings.Repeat("x", 1<<20), "answered 502 Bad Gateway: " + strings.Repeat("x", 200) + "...", false},
	} {
		server, requests := receiver(t, test.status, test.answer)
		err := mustWebhook(t, server.URL, "").Send(t.Context(), []slotmon.Alert{example()})
		if err == nil || err.Error() != test.want || refused(err) != test.refused {
			t.Errorf("got  %v (refused: %t)\nwant %s", err, refused(err), test.want)
		}
		if n := len(requests()); n != 1 {
			t.Errorf("%d: %d requests; a redirect was followed", test.status, n)
		}
	}
}

func TestErrorsHoldNothingOfAURLButItsHost(t *testing.T) {
	const path = "/services/T0SECRET1/b-c-d?token=t%2Fo%2Fk&x=y%20SECRET2"
	server, _ := receiver(t, 404, "Cannot POST "+path+" for usr4:p%20w or p w or dXNyNDpwIHc=, T0SECRET1 &quot;t/o/k&quot; y SECRET2")
	refusing, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := refusing.Addr().String()
	if err := refusing.Close(); err != nil {
		t.Fatal(err)
	}
	garbage, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = garbage.Close() }()
	go func() {
		for {
			conn, err := garbage.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "NO HTTP "+path+"\r\n\r\n")
			_ = conn.Close()
		}
	}()
	for name, host := range map[string]string{"404": strings.TrimPrefix(server.URL, "http://"), "refused": closed,
		"garbage": garbage.Addr().String(), "no such host": "nowhere.invalid"} {
		w := mustWebhook(t, "http://usr4:p%20w@"+host+path, "")
		err := w.Send(t.Context(), []slotmon.Alert{example()})
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		for _, text := range []string{err.Error(), w.Name()} {
			for _, secret := range []string{"Post", "SECRET", "T0", "b-c-d", "t%2Fo", "t/o/k", "usr4", "p%20w", "p w", "dXNyNDp"} {
				if strings.Contains(text, secret) {
					t.Errorf("%s: %q shows %q", name, text, secret)
				}
			}
		}
		if want := "webhook http://" + host; w.Name() != want {
			t.Errorf("name = %s, want %s", w.Name(), want)
		}
		t.Logf("%s: %v", name, err)
	}
}

func TestURLsThatCannotBeUsedAreRefusedWithoutShowingThem(t *testing.T) {
	for _, url := range []string{"", "hunter2", "ftp://hunter2@h", "http:///hunter2", "http://u:hunter2/@h%zz"} {
		if _, err := NewWebhook(url, ""); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("webhook %q: %v", url, err)
		}
		if _, err := NewAlertmanager(url, ""); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("alertmanager %q: %v", url, err)
		}
	}
}

func TestLogWritesOneLineForEachState(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	warning, critical := example(), example()
	critical.Severity, critical.ID, critical.Slot = slotmon.Critical, slotmon.SlotLost, "other"
	ended := warning
	ended.Resolved = ended.Raised.Add(time.Minute)
	if err := NewLog(zap.New(core)).Send(t.Context(), []slotmon.Alert{warning, critical, ended}); err != nil {
		t.Fatal(err)
	}
	want := []struct {
		level                          zapcore.Level
		message, alert, severity, slot string
	}{
		{zapcore.WarnLevel, "alert raised", "retained_wal", "warning", "cdcpub"},
		{zapcore.ErrorLevel, "alert raised", "slot_lost", "critical", "other"},
		{zapcore.InfoLevel, "alert resolved", "retained_wal", "warning", "cdcpub"},
	}
	if logs.Len() != len(want) {
		t.Fatalf("%d lines", logs.Len())
	}
	for i, line := range logs.All() {
		fields := line.ContextMap()
		for name, value := range map[string]any{"event": "alert", "status": strings.TrimPrefix(want[i].message, "alert "),
			"alert": want[i].alert, "severity": want[i].severity, "slot": want[i].slot, "server": "db.internal:5432/shop",
			"since": warning.Since, "summary": "S", "cause": "C", "cure": "D"} {
			if fields[name] != value {
				t.Errorf("line %d: %s = %v, want %v", i, name, fields[name], value)
			}
		}
		if line.Level != want[i].level || line.Message != want[i].message {
			t.Errorf("line %d: %s %s", i, line.Level, line.Message)
		}
	}
}

func TestAlertNamesAreInCamelCase(t *testing.T) {
	for id, want := range map[slotmon.FindingID]string{
		slotmon.SlotLost: "CdcpubSlotLost", slotmon.RetainedWAL: "CdcpubRetainedWal", slotmon.CatalogXminAge: "CdcpubCatalogXminAge",
	} {
		if got := AlertName(id); got != want {
			t.Errorf("AlertName(%s) = %s, want %s", id, got, want)
		}
	}
}
