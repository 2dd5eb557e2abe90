package page

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/internal/publisher"
	"github.com/cdcpub/cdcpub/slotmon"
)

var desk = screen{width: 1280, height: 900, scheme: "light"}

const verdictOnPage = `document.documentElement.dataset.verdict`

func TestNamesAndMessagesAreTextAndNeverMarkup(t *testing.T) {
	attack := `<script>window.attacked = 1</script><img src=x onerror="window.attacked = 1">`
	browser := chromium(t)
	w := newWorld()
	page := New(w.source(attack))
	w.play(page, 3, func(step, last int, at time.Time) observation {
		o := w.dying(359, 359, at)
		o.publisher.Stall.Cause, o.publisher.Slot, o.publisher.ConfirmedLSN = attack, attack, attack
		o.publisher.Role, o.publisher.State = attack, publisher.State(attack)
		o.publisher.Kafka.Partitions = []publisher.Partition{{Topic: attack, Stall: attack}}
		second := o.monitor.Servers[0]
		second.Up, second.Unreachable, second.Name = false, attack, "second "+attack
		first := &o.monitor.Servers[0]
		first.Name, first.Sample.Unseen, first.Sample.Server.Version = attack, []string{attack}, attack
		status := attack
		slot := held(attack, attack, 1, 1, true)
		slot.Slot.WALStatus, slot.Slot.Plugin, slot.Slot.Holder.ApplicationName = &status, attack, attack
		slot.Report = slotmon.Report{
			Verdict: slotmon.Critical, Findings: []slotmon.Finding{{Severity: slotmon.Critical, Summary: attack}},
			Culprit: attack, SecondsToLostWhy: attack, SecondsToFullWhy: "x" + attack,
		}
		first.Slots = []monitor.Slot{slot, held(attack+"2", "", 5, 5, false)}
		o.monitor.Servers = append(o.monitor.Servers, second)
		o.monitor.Sinks = []monitor.Sink{{Name: attack, LastError: attack}}
		o.monitor.Alerts = []slotmon.Alert{{
			Server: attack, Slot: attack, ID: slotmon.FindingID(attack), Severity: slotmon.Critical, Summary: attack, Cause: attack, Cure: attack,
		}}
		return o
	})
	server := httptest.NewServer(page.Handler())
	t.Cleanup(server.Close)
	p := open(t, browser, server.URL, screen{width: 360, height: 740, scheme: "dark"})
	p.awaitShown()
	if n := eval[int](p, `document.body.textContent.split('<script>').length - 1`); n < 25 {
		t.Errorf("the text is on the page %d times", n)
	}
	if eval[bool](p, `window.attacked !== undefined`) || eval[int](p, `document.querySelectorAll('body script, img').length`) != 0 {
		t.Error("a text became markup")
	}
	p.fits()
	p.quiet()
}

func TestALostConnectionIsShownAndSoIsItsReturn(t *testing.T) {
	browser := chromium(t)
	w := newWorld()
	page := New(w.source("1.4.0"))
	w.play(page, 359, w.healthy)
	server := httptest.NewServer(page.Handler())
	p := open(t, browser, server.URL, desk)
	p.awaitShown()
	answered := eval[string](p, `document.getElementById('answered').textContent`)
	icon := eval[string](p, `document.querySelector('link[rel=icon]').href`)
	p.quiet()

	address := server.Listener.Addr().String()
	server.CloseClientConnections()
	server.Close()
	p.await(verdictOnPage + ` === 'lost'`)
	banner := eval[string](p, `document.getElementById('stale').innerText`)
	if !strings.HasPrefix(banner, "No answer since ") || !strings.HasSuffix(banner, "What is below is old.") || answered == "" {
		t.Errorf("%q", banner)
	}
	if got := eval[string](p, `document.getElementById('word').innerText`); got != "NO ANSWER" {
		t.Errorf("the verdict is %q", got)
	}
	if title := eval[string](p, `document.title`); !strings.Contains(title, "NO ANSWER") {
		t.Errorf("the title is %q", title)
	}
	if eval[string](p, `document.querySelector('link[rel=icon]').href`) == icon {
		t.Error("the icon is the same")
	}
	colours := eval[[]string](p, `['.badge.ok', '.value', '#slots td.number'].map((s) => getComputedStyle(document.querySelector(s)).color)`)
	if colours[0] != colours[1] || colours[1] != colours[2] {
		t.Errorf("what is old is not grey: %v", colours)
	}
	p.contrasts()
	p.fits()
	p.shoot("lost-1280-light")

	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	again := &httptest.Server{Listener: listener, Config: &http.Server{Handler: page.Handler()}}
	again.Start()
	t.Cleanup(again.Close)
	p.await(verdictOnPage + ` === 'ok' && document.getElementById('stale').hidden && !document.documentElement.hasAttribute('data-stale')`)
}

// gate lets requests through, or holds them.
type gate struct {
	http.Handler
	mu     sync.Mutex
	closed chan struct{} // nil: open
	passed map[string]int
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	closed := g.closed
	g.passed[r.URL.Path]++
	g.mu.Unlock()
	if closed != nil {
		select {
		case <-closed:
		case <-r.Context().Done():
			return
		}
	}
	g.Handler.ServeHTTP(w, r)
}

func (g *gate) hold() (release func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	closed := make(chan struct{})
	g.closed = closed
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.closed = nil
		close(closed)
	}
}

func (g *gate) count(path string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.passed[path]
}

func gated(t *testing.T, story string) (*world, *Page, *gate, string) {
	t.Helper()
	w, page, _ := tell(t, story)
	g := &gate{Handler: page.Handler(), passed: map[string]int{}}
	server := httptest.NewServer(g)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return w, page, g, server.URL
}

func TestWithTheDefaultPollAServerThatHangsIsShownWithinTenSeconds(t *testing.T) {
	browser := chromium(t)
	w := newWorld()
	source := w.source("1")
	source.Poll = 0
	page := New(source)
	w.play(page, 4, w.healthy)
	g := &gate{Handler: page.Handler(), passed: map[string]int{}}
	server := httptest.NewServer(g)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	p := open(t, browser, server.URL, desk)
	p.awaitShown()
	release := g.hold()
	began := time.Now()
	p.await(verdictOnPage + ` === 'lost'`)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
	release()
	p.await(verdictOnPage + ` === 'ok'`)
}

func TestAfterAPauseThePageWaitsAndDoesNotShowOldDataAsPresent(t *testing.T) {
	browser := chromium(t)
	_, _, server := tell(t, "minute")
	p := open(t, browser, server.URL, desk)
	p.awaitShown()
	// The computer sleeps: hours pass, and no question has an answer.
	eval[bool](p, `{
		const now = Date.now, ask = window.fetch;
		let hours = 0;
		window.fetch = () => new Promise(() => {});
		Date.now = () => now() + 3600000 * hours++;
		window.wake = () => {
			window.fetch = ask;
			Date.now = () => now() + 3600000 * hours;
			document.dispatchEvent(new Event('visibilitychange'));
		};
		true
	}`)
	p.await(verdictOnPage + ` === 'waiting' && document.documentElement.hasAttribute('data-stale')`)
	if banner := eval[string](p, `document.getElementById('stale').innerText`); !strings.HasPrefix(banner, "Asking again.") {
		t.Errorf("%q", banner)
	}
	if said := eval[string](p, `document.getElementById('announcement').textContent`); !strings.HasPrefix(said, "cdcpub: OK.") {
		t.Errorf("waiting was announced: %q", said)
	}
	eval[bool](p, `{ wake(); true }`)
	p.await(verdictOnPage + ` === 'ok' && !document.documentElement.hasAttribute('data-stale')`)
}

func TestAHiddenPageDoesNotPollAndCatchesUp(t *testing.T) {
	browser := chromium(t)
	w, page, g, url := gated(t, "minute")
	p := open(t, browser, url, desk)
	p.awaitShown()
	const hide = `{
		Object.defineProperty(document, 'hidden', { configurable: true, get: () => %t });
		document.dispatchEvent(new Event('visibilitychange'));
		true
	}`
	eval[bool](p, fmt.Sprintf(hide, true))
	const tenPolls = `new Promise((resolve) => setTimeout(() => resolve(true), 1000))`
	eval[bool](p, `new Promise((resolve) => setTimeout(() => resolve(true), 200))`) // the polls under way end
	before := g.count("/page/now") + g.count("/page/history")
	eval[bool](p, tenPolls)
	if after := g.count("/page/now") + g.count("/page/history"); after != before {
		t.Errorf("%d requests while hidden", after-before)
	}
	page.history.add(page.meter.measure(w.healthy(5, 5, time.Now())))
	eval[bool](p, fmt.Sprintf(hide, false))
	p.await(`document.querySelector('#plot-retained .area').getAttribute('aria-valuemax') === '5'`)
	p.quiet()
}

func TestTheHistoryComesPieceByPiece(t *testing.T) {
	browser := chromium(t)
	w, page, server := tell(t, "minute")
	p := open(t, browser, server.URL, desk)
	p.awaitShown()
	cursor := page.history.since("").Cursor
	page.history.add(page.meter.measure(w.healthy(5, 5, time.Now())))
	p.await(`document.querySelector('#plot-retained .area').getAttribute('aria-valuemax') === '5'`)
	asked := map[string]int{}
	for _, url := range p.requested() {
		if _, since, ok := strings.Cut(url, "/page/history?since="); ok {
			asked[since]++
		}
	}
	if asked[""] != 1 || asked[cursor] == 0 {
		t.Errorf("asked %v, want everything once and then %s", asked, cursor)
	}
}

func TestALineBreaksWhereNothingIsKnown(t *testing.T) {
	browser := chromium(t)
	w := newWorld()
	page := New(w.source("1"))
	end := time.Now()
	for step := range 360 {
		o := w.healthy(step, 359, end.Add(time.Duration(step-359)*Step))
		o.monitor.Servers[0].Up = step < 100 || step >= 150 // a value is missing
		w.set(o)
		if step < 200 || step >= 260 { // the points themselves are missing
			page.history.add(page.meter.measure(o))
		}
	}
	server := httptest.NewServer(page.Handler())
	t.Cleanup(server.Close)
	p := open(t, browser, server.URL, desk)
	p.awaitShown()
	pieces := eval[[]string](p, `document.querySelector('#plot-retained path.line').getAttribute('d').split('M').slice(1)`)
	var lines []int
	for _, piece := range pieces {
		lines = append(lines, strings.Count(piece, "L"))
	}
	if !slices.Equal(lines, []int{99, 49, 100}) { // the last one goes on to the present
		t.Errorf("pieces of %v lines, want 99, 49 and 100", lines)
	}
	verdicts := eval[[]string](p, `[...document.querySelectorAll('#plot-verdict .run')].map((e) => e.getAttribute('class'))`)
	if !slices.Equal(verdicts, []string{"run ok", "run unknown", "run ok", "run ok"}) {
		t.Errorf("stretches %q", verdicts)
	}
}

func TestOnlyChangesOfTheVerdictAreAnnounced(t *testing.T) {
	browser := chromium(t)
	w, _, server := tell(t, "minute")
	p := open(t, browser, server.URL, desk)
	p.awaitShown()
	eval[bool](p, `{
		window.announced = [];
		const region = document.getElementById('announcement');
		new MutationObserver(() => announced.push(region.textContent)).observe(region, { childList: true, characterData: true, subtree: true });
		true
	}`)
	if others := eval[int](p, `document.querySelectorAll('[aria-live], [role=alert], [role=status], [role=log], output').length`); others != 1 {
		t.Errorf("%d live regions", others)
	}
	o := w.look()
	stalled := *o.publisher
	stalled.Stall = &publisher.Stall{Cause: "topic x: NOT_LEADER", Since: time.Now()}
	o.publisher = &stalled
	w.set(o)
	p.await(`document.getElementById('headline').textContent === 'topic x: NOT_LEADER'`)
	if n := eval[int](p, `announced.length`); n != 0 {
		t.Errorf("%d announcements without a change of the verdict", n)
	}
	unready := stalled
	unready.Ready = false
	o.publisher = &unready
	w.set(o)
	p.await(verdictOnPage + ` === 'warning'`)
	if got := eval[string](p, `announced.join('|')`); got != "cdcpub: WARNING. topic x: NOT_LEADER" {
		t.Errorf("announced %q", got)
	}
	if title := eval[string](p, `document.title`); title != "▲ WARNING · cdcpub" {
		t.Errorf("the title is %q", title)
	}
}

func TestWhatSomebodySelectsStays(t *testing.T) {
	browser := chromium(t)
	w, _, g, url := gated(t, "dying")
	p := open(t, browser, url, desk)
	p.awaitShown()
	eval[bool](p, `{ getSelection().selectAllChildren(document.querySelector('.alert dd:last-child')); true }`)
	selected := eval[string](p, `getSelection().toString()`)
	o := w.look()
	status := *o.publisher
	status.InFlight.Records = 9999
	o.publisher = &status
	w.set(o)
	p.await(`document.getElementById('publisher').innerText.includes('9,999')`)
	if got := eval[string](p, `getSelection().toString()`); got != selected || !strings.Contains(got, "pg_reload_conf") {
		t.Errorf("selected is %q, was %q, after %d answers", got, selected, g.count("/page/now"))
	}
}

func TestANewVersionLoadsItsOwnPage(t *testing.T) {
	browser := chromium(t)
	serve := func(version string) http.Handler {
		w := newWorld()
		page := New(w.source(version))
		w.play(page, 3, w.healthy)
		return page.Handler()
	}
	old, upgraded := serve("1.0.0"), serve("2.0.0")
	var isUpgraded atomic.Bool
	loaded := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isUpgraded.Load() {
			old.ServeHTTP(w, r)
			return
		}
		upgraded.ServeHTTP(w, r)
		if r.URL.RequestURI() == "/page/history?since=" { // only a page that was just opened asks so
			select {
			case loaded <- struct{}{}:
			default:
			}
		}
	}))
	t.Cleanup(server.Close)
	p := open(t, browser, server.URL, desk)
	p.awaitShown()
	isUpgraded.Store(true)
	select {
	case <-loaded:
	case <-time.After(10 * time.Second):
		t.Fatal("the page was not loaded again")
	}
	p.await(`document.getElementById('version').textContent === 'cdcpub 2.0.0'`)
}
