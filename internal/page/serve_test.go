package page

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func get(t *testing.T, h http.Handler, path string, header ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func handler(t *testing.T) http.Handler {
	t.Helper()
	_, page, _ := tell(t, "minute")
	return page.Handler()
}

func TestEveryAnswerHasThePolicy(t *testing.T) {
	h := handler(t)
	for _, path := range []string{"/", "/page/app.js", "/page/page.css", "/page/now", "/page/history", "/page/none", "/none"} {
		header := get(t, h, path).Header
		csp := header.Get("Content-Security-Policy")
		if !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';") ||
			strings.Contains(csp, "unsafe") || header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, header)
		}
	}
}

func TestDataIsNotKeptAndFilesAreAskedForAgain(t *testing.T) {
	h := handler(t)
	for _, path := range []string{"/page/now", "/page/history"} {
		r := get(t, h, path)
		if r.StatusCode != http.StatusOK || r.Header.Get("Cache-Control") != "no-store" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s %v", path, r.Status, r.Header)
		}
		if !json.Valid(body(t, r)) {
			t.Errorf("%s is not JSON", path)
		}
	}
	for path, contentType := range map[string]string{
		"/": "text/html; charset=utf-8", "/page/app.js": "text/javascript; charset=utf-8", "/page/page.css": "text/css; charset=utf-8",
	} {
		r := get(t, h, path)
		etag := r.Header.Get("ETag")
		if r.StatusCode != http.StatusOK || etag == "" || r.Header.Get("Cache-Control") != "no-cache" || r.Header.Get("Content-Type") != contentType {
			t.Errorf("%s: %s %v", path, r.Status, r.Header)
		}
		if again := get(t, h, path, "If-None-Match", etag); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s again: %s", path, again.Status)
		}
	}
}

func TestOnlyKnownPathsAndReadingMethods(t *testing.T) {
	h := handler(t)
	for _, path := range []string{"/none", "/index.html", "/page/", "/page/none", "/page/index.html", "/page/../page.go"} {
		if r := get(t, h, path); r.StatusCode == http.StatusOK {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/page/now", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestTheFilesAreSmallAndAskNobodyElse(t *testing.T) {
	total := 0
	err := fs.WalkDir(files, "assets", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		total += len(content)
		text := strings.ReplaceAll(string(content), "http://www.w3.org/2000/svg", "")
		for _, forbidden := range []string{"http://", "https://", "//cdn", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style="} {
			if strings.Contains(text, forbidden) {
				t.Errorf("%s has %s", path, forbidden)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if total == 0 || total > 200_000 {
		t.Errorf("%d bytes", total)
	}
}

func TestHistoryGrowsByTheCursor(t *testing.T) {
	w, page, _ := tell(t, "minute")
	h := page.Handler()
	read := func(cursor string) (answer struct {
		Cursor string     `json:"cursor"`
		Whole  bool       `json:"whole"`
		AtMS   []int64    `json:"at_ms"`
		Rate   []*float64 `json:"rate"`
	}) {
		t.Helper()
		if err := json.Unmarshal(body(t, get(t, h, "/page/history?since="+cursor)), &answer); err != nil {
			t.Fatal(err)
		}
		return answer
	}
	a := read("")
	if !a.Whole || len(a.AtMS) != 5 || a.Rate[0] != nil || a.Rate[1] == nil {
		t.Errorf("%+v", a)
	}
	page.history.add(page.meter.measure(w.healthy(5, 5, time.Now().Add(Step))))
	if b := read(a.Cursor); b.Whole || len(b.AtMS) != 1 {
		t.Errorf("%+v", b)
	}
}

func TestRunTakesAPointAtOnceAndThenEveryTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.set(w.healthy(0, 1, time.Now()))
		page := New(w.source("1.0"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		began := time.Now()
		go func() { page.Run(ctx); close(done) }()
		synctest.Wait()
		if n := len(page.history.since("").AtMS); n != 1 {
			t.Fatalf("%d points at once", n)
		}
		w.set(w.healthy(1, 1, time.Now()))
		time.Sleep(25 * time.Second)
		answer := page.history.since("")
		if len(answer.AtMS) != 3 || answer.AtMS[2] != began.Add(20*time.Second).UnixMilli() {
			t.Errorf("%d points after 25 s: %v", len(answer.AtMS), answer.AtMS)
		}
		if answer.Rate[0].known() || !answer.Rate[1].known() || answer.Rate[2] != 0 {
			t.Errorf("%v", answer.Rate)
		}
		cancel()
		<-done
		time.Sleep(time.Minute)
		if n := len(page.history.since("").AtMS); n != 3 {
			t.Errorf("%d points after the end", n)
		}
	})
}

func TestReadingWhileRunningIsSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.set(w.watched(0, 1, time.Now()))
		page := New(w.source("1.0"))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		go page.Run(ctx)
		h := page.Handler()
		for ctx.Err() == nil {
			get(t, h, "/page/history")
			get(t, h, "/page/now")
			time.Sleep(7 * time.Second)
		}
		synctest.Wait()
		if n := len(page.history.since("").AtMS); n != capacity {
			t.Errorf("%d points after two hours", n)
		}
	})
}

func TestAPageOfSixtySlotsIsNotTooBig(t *testing.T) {
	w := newWorld()
	page := New(w.source("1.0"))
	w.play(page, 359, func(_, _ int, at time.Time) observation {
		return observation{at: at, monitor: manySlots(60, at)}
	})
	if n := len(body(t, get(t, page.Handler(), "/page/history"))); n > 1<<20 {
		t.Errorf("a whole history of 60 slots has %d bytes", n)
	}
}

func body(t *testing.T, r *http.Response) []byte {
	t.Helper()
	defer r.Body.Close()
	content, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
