package page

import (
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// chromium starts a browser for a test.
func chromium(t *testing.T) context.Context {
	t.Helper()
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Fatal("no chromium; install it with: apt-get update && apt-get install -y chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.Flag("lang", "en"))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// screen is how somebody looks at the page.
type screen struct {
	width, height int64
	scheme        string // prefers-color-scheme
}

// tab is an open page and everything that it complained about.
type tab struct {
	*testing.T
	ctx context.Context
	url string

	mu         sync.Mutex
	complaints []string
	requests   []string
}

// open shows the page of a server.
func open(t *testing.T, browser context.Context, url string, s screen) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	page := &tab{T: t, ctx: ctx, url: url}
	if err := chromedp.Listen(ctx, page.hear); err != nil {
		t.Fatal(err)
	}
	command(page, network.Enable, network.EnableParams{})
	command(page, log.Enable, cdp.Empty{})
	command(page, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: s.width, Height: s.height, DeviceScaleFactor: 1,
	})
	command(page, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Europe/Berlin"})
	page.prefer(s.scheme)
	run(page, chromedp.Navigate(url+"/"))
	return page
}

// prefer sets prefers-color-scheme.
func (p *tab) prefer(scheme string) {
	p.Helper()
	command(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
}

// command sends one command of the DevTools protocol.
func command[P, R any](p *tab, c cdp.Command[P, R], params P) R {
	p.Helper()
	result, err := chromedp.Call(p.ctx, c, params)
	if err != nil {
		p.Fatal(err)
	}
	return result
}

func run[T any](p *tab, action chromedp.Action[T]) T {
	p.Helper()
	result, err := chromedp.Run(p.ctx, action)
	if err != nil {
		p.Fatal(err)
	}
	return result
}

func (p *tab) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		p.complaints = append(p.complaints, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		for _, arg := range e.Args {
			p.complaints = append(p.complaints, string(e.Type)+": "+string(arg.Value))
		}
	case *log.EventEntryAdded: // violations of the policy among them
		p.complaints = append(p.complaints, string(e.Entry.Level)+": "+e.Entry.Text+" "+e.Entry.URL)
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	}
}

// eval runs an expression in the page; a promise is waited for.
func eval[T any](p *tab, expression string) T {
	p.Helper()
	return run(p, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// await waits until a condition holds in the page.
func (p *tab) await(condition string) {
	p.Helper()
	const script = `new Promise((resolve) => {
		const end = performance.now() + 30000;
		const look = () => (CONDITION) ? resolve(true) : performance.now() > end ? resolve(false) : setTimeout(look, 10);
		look();
	})`
	if !eval[bool](p, strings.Replace(script, "CONDITION", condition, 1)) {
		p.Fatalf("not within 30 s: %s\n%s\n%s", condition, eval[string](p, "document.body.innerText"), strings.Join(p.complained(), "\n"))
	}
}

// awaitShown waits until an answer and the history are on the page.
func (p *tab) awaitShown() {
	p.Helper()
	p.await(`!['waiting', 'lost'].includes(document.documentElement.dataset.verdict)`)
	p.await(`!document.querySelector('#plot-verdict figcaption').textContent.startsWith('no point')`)
}

func (p *tab) complained() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.complaints...)
}

func (p *tab) requested() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.requests...)
}

// quiet asserts that nothing went wrong in the page and that it talked to its
// own server only.
func (p *tab) quiet() {
	p.Helper()
	for _, complaint := range p.complained() {
		p.Errorf("the browser complains: %s", complaint)
	}
	for _, url := range p.requested() {
		if !strings.HasPrefix(url, p.url+"/") && !strings.HasPrefix(url, "data:") {
			p.Errorf("the page asked %s", url)
		}
	}
}

// shoot keeps a picture of the whole page in CDCPUB_SCREENSHOTS, if that is set.
func (p *tab) shoot(name string) {
	p.Helper()
	directory := os.Getenv("CDCPUB_SCREENSHOTS")
	if directory == "" {
		return
	}
	picture := run(p, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(directory, name+".png"), picture, 0o644); err != nil {
		p.Fatal(err)
	}
}

// stories are what the pages of the tests show.
var stories = map[string]func(*world, *Page){
	"healthy": func(w *world, p *Page) { w.play(p, 359, w.healthy) },
	"dying":   func(w *world, p *Page) { w.play(p, 359, w.dying) },
	"watch":   func(w *world, p *Page) { w.play(p, 359, w.watched) },
	"empty":   func(w *world, p *Page) { w.play(p, 0, w.starting) },
	"minute":  func(w *world, p *Page) { w.play(p, 4, w.healthy) },
	"long":    func(w *world, p *Page) { w.play(p, 4, w.long) },
	"lost":    func(w *world, p *Page) { w.play(p, 359, w.lost) },
	"rights":  func(w *world, p *Page) { w.play(p, 5, w.noRights) },
}

// tell serves a story.
func tell(t *testing.T, story string) (*world, *Page, *httptest.Server) {
	t.Helper()
	w := newWorld()
	p := New(w.source("1.4.0"))
	stories[story](w, p)
	server := httptest.NewServer(p.Handler())
	t.Cleanup(server.Close)
	return w, p, server
}
