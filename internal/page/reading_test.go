package page

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func TestThePlotsAreReadOutByKeysAndPointer(t *testing.T) {
	browser := chromium(t)
	_, _, server := tell(t, "healthy")
	p := open(t, browser, server.URL, desk)
	p.awaitShown()
	const area = `document.querySelector('#plot-retained .area')`
	const said = area + `.getAttribute('aria-valuetext')`
	const value = `document.querySelector('#plot-retained .value').textContent`
	const note = `document.querySelector('#plot-retained .note').textContent`
	eval[bool](p, area+`.focus(), true`)
	newest := eval[string](p, said)
	press := func(key string) (text string) {
		t.Helper()
		run(p, chromedp.KeyEvent(key))
		text = eval[string](p, said)
		if shown := eval[string](p, value); !strings.HasSuffix(text, shown) {
			t.Errorf("says %q and shows %q", text, shown)
		}
		if when, _, _ := strings.Cut(text, ": "); !strings.HasPrefix(eval[string](p, note), "at "+when) {
			t.Errorf("says %q and shows %q", text, eval[string](p, note))
		}
		return text
	}
	home := press(kb.Home)
	if now := eval[string](p, area+`.getAttribute('aria-valuenow')`); now != "0" {
		t.Errorf("home goes to point %s", now)
	}
	if second := press(kb.ArrowRight); second == home {
		t.Error("the arrow does not move")
	}
	if back := press(kb.ArrowLeft); back != home {
		t.Errorf("%q after right and left, want %q", back, home)
	}
	if end := press(kb.End); end != newest {
		t.Errorf("%q at the end, want %q", end, newest)
	}
	if n := eval[int](p, `document.querySelectorAll('#plot-retained .cursor, #plot-retained .dot').length`); n != 2 {
		t.Errorf("%d marks", n)
	}
	p.shoot("cursor-1280-light")
	eval[bool](p, area+`.focus(), true`)
	press(kb.Home)
	run(p, chromedp.KeyEvent(kb.Escape))
	if eval[string](p, note) != "since restart_lsn" {
		t.Error("escape does not give the present back")
	}

	type place struct{ X, Y float64 }
	middle := eval[place](p, `(() => { const b = document.querySelector('#plot-rate .area').getBoundingClientRect(); return { X: b.x + b.width / 2, Y: b.y + b.height / 2 }; })()`)
	run(p, chromedp.MouseEvent("mouseMoved", middle.X, middle.Y))
	p.await(`document.querySelector('#plot-rate .note').textContent.startsWith('at ')`)
	run(p, chromedp.MouseEvent("mouseMoved", 1, 1))
	p.await(`document.querySelector('#plot-rate .note').textContent.startsWith('events')`)
	p.quiet()
}
