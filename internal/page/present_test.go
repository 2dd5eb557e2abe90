package page

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"

	"github.com/cdcpub/cdcpub/internal/monitor"
	"github.com/cdcpub/cdcpub/slotmon"
)

// TestOneViewIsOfOneSample: the last point of the history is older than what is
// true now, as it is for most of ten seconds.
func TestOneViewIsOfOneSample(t *testing.T) {
	browser := chromium(t)
	w, _, server := tell(t, "minute")
	o := w.look()
	o.monitor.Interval = time.Hour // a slow browser finds the sample fresh
	slot := held("cdcpub", "shop", 36<<20+900<<10, 14<<20+800<<10, true)
	slot.Report = slotmon.Report{Verdict: slotmon.Critical, SecondsToLost: new(2.7), SecondsToFullWhy: "x", Findings: []slotmon.Finding{
		{ID: slotmon.TimeToLost, Severity: slotmon.Critical, Summary: "will be lost in about 2 s"},
	}}
	first := o.monitor.Servers[0]
	first.Verdict, first.Slots = slotmon.Critical, []monitor.Slot{slot}
	o.monitor.Servers = []monitor.Server{first}
	w.set(o)
	p := open(t, browser, server.URL, desk)
	p.awaitShown()
	cells := eval[[]string](p, `[...document.querySelectorAll('#slots td.number')].map((e) => e.textContent)`)
	for i, id := range []string{"plot-retained", "plot-lag"} {
		value := eval[string](p, `document.querySelector('#`+id+` .value').textContent`)
		caption := eval[string](p, `document.querySelector('#`+id+` figcaption').textContent`)
		if value != cells[i] || !strings.HasPrefix(caption, "now "+value+", ") || !strings.Contains(caption, "MiB") {
			t.Errorf("%s: %s, the table %s, the caption %q", id, value, cells[i], caption)
		}
	}
	if strip := eval[string](p, `document.querySelector('#plot-verdict figcaption').textContent`); !strings.HasPrefix(strip, "critical just now; ") {
		t.Errorf("the strip says %q", strip)
	}
	if headline := eval[string](p, `document.getElementById('headline').textContent`); !strings.HasSuffix(headline, "in about 2 s") {
		t.Errorf("%q", headline)
	}
	if left := eval[string](p, `document.querySelector('#slots .until').textContent`); left != "2 s to lost" {
		t.Errorf("%q", left)
	}
	p.quiet()
}

func TestFindingsAreCardsBeforeTheirAlertsAndWhatIsGoneIsGrey(t *testing.T) {
	browser := chromium(t)
	_, _, server := tell(t, "lost")
	p := open(t, browser, server.URL, desk)
	p.awaitShown()
	cards := eval[[]string](p, `[...document.querySelectorAll('#alerts article')].map((e) => e.innerText)`)
	if len(cards) != 4 {
		t.Fatalf("%d cards: %q", len(cards), cards)
	}
	for _, part := range []string{"is lost and can never be read again", "alert is due", "cdcpub slot create cdcpub", "slot_lost"} {
		if !strings.Contains(cards[0], part) {
			t.Errorf("no %q in %q", part, cards[0])
		}
	}
	for _, part := range []string{"gone, resolving", "will be lost in 18 min"} {
		if !strings.Contains(cards[2], part) {
			t.Errorf("no %q in %q", part, cards[2])
		}
	}
	if strings.Contains(cards[2], "ALTER SYSTEM") {
		t.Errorf("the cure of what is gone: %q", cards[2])
	}
	links := eval[[]string](p, `[...document.querySelectorAll('#alerts a')].map((e) => e.href)`)
	const book = "https://github.com/cdcpub/cdcpub/blob/main/docs/runbook.md#"
	if !slices.Equal(links, []string{book + "slot_lost", book + "publisher_blocked"}) {
		t.Errorf("links %q", links)
	}
	colours := eval[[]string](p, `['.alert.gone .badge', '.alert.gone .summary', 'h2 + .content .minor'].map((s) => getComputedStyle(document.querySelector(s)).color)`)
	if colours[0] != colours[1] || colours[1] != colours[2] {
		t.Errorf("what is gone is not quiet: %q", colours)
	}
	// The loss is said in wal_status and as the reason, and not again.
	row := eval[string](p, `document.querySelector('#slots tbody tr').innerText`)
	if strings.Count(row, "lost") != 2 {
		t.Errorf("the row says %q", row)
	}
	p.quiet()
}

func TestTheHeaderIsLegibleAtEveryMoment(t *testing.T) {
	browser := chromium(t)
	_, _, server := tell(t, "minute")
	p := open(t, browser, server.URL, desk)
	p.awaitShown()
	command(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-reduced-motion", Value: "no-preference"},
	}})
	for _, verdict := range []string{"critical", "waiting", "warning"} {
		pairs := eval[[]string](p, fmt.Sprintf(`new Promise((resolve) => {
			const header = document.querySelector('header');
			const colours = () => getComputedStyle(header).backgroundColor + ' ' + getComputedStyle(header).color;
			colours();
			document.documentElement.dataset.verdict = '%s';
			const first = colours();
			setTimeout(() => resolve([first, colours()]), 400);
		})`, verdict))
		if pairs[0] != pairs[1] {
			t.Errorf("%s: at first %s, then %s", verdict, pairs[0], pairs[1])
		}
	}
}

// broken lists the words that stand on two lines.
func (p *tab) broken(within string) []string {
	p.Helper()
	return eval[[]string](p, fmt.Sprintf(`(() => {
		const broken = [];
		for (const e of document.querySelectorAll('%s')) {
			const walker = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
			while (walker.nextNode()) {
				for (const { 0: word, index } of walker.currentNode.data.matchAll(/[^\s-]+/g)) {
					const range = document.createRange();
					range.setStart(walker.currentNode, index);
					range.setEnd(walker.currentNode, index + word.length);
					if (new Set([...range.getClientRects()].map((r) => r.top)).size > 1) broken.push(word);
				}
			}
		}
		return broken;
	})()`, within))
}

func TestNoWordIsBrokenWhereThereIsRoom(t *testing.T) {
	browser := chromium(t)
	for story, widths := range map[string][]int64{"rights": {360, 1024, 1140, 1280}, "dying": {1280}, "lost": {1280}} {
		_, _, server := tell(t, story)
		for _, width := range widths {
			p := open(t, browser, server.URL, screen{width, 900, "light"})
			p.awaitShown()
			if words := p.broken("#servers tbody, #slots tbody, #publisher dl"); len(words) > 0 {
				t.Errorf("%s, %d: broken: %q", story, width, words)
			}
			p.fits()
			p.shoot(fmt.Sprintf("words-%s-%d", story, width))
		}
	}
}

func TestWhatIsNotKnownOfTheVolumeIsSaidBelow(t *testing.T) {
	browser := chromium(t)
	_, _, server := tell(t, "rights")
	p := open(t, browser, server.URL, desk)
	p.awaitShown()
	cell := eval[string](p, `document.querySelector('#servers td:last-child').innerText`)
	if !strings.HasPrefix(cell, "not known\nthe role may not see") {
		t.Errorf("%q", cell)
	}
	// slot watch publishes nothing.
	if row := eval[string](p, `document.querySelector('#slots tbody tr').innerText`); !strings.Contains(row, "configured slot") || strings.Contains(row, "published") {
		t.Errorf("%q", row)
	}
}

func TestTheAxisBeginsWithTheProcess(t *testing.T) {
	browser := chromium(t)
	for _, c := range []struct {
		points int
		share  float64 // of the width of the plot that the line has
	}{{6, 50.0 / 300}, {90, 1}, {360, 1}} {
		w := newWorld()
		page := New(w.source("1"))
		w.play(page, c.points-1, w.healthy)
		server := httptest.NewServer(page.Handler())
		t.Cleanup(server.Close)
		p := open(t, browser, server.URL, desk)
		p.awaitShown()
		share := eval[float64](p, `(() => {
			const line = document.querySelector('#plot-retained path.line').getBoundingClientRect();
			return line.width / (document.querySelector('#plot-retained svg').getBoundingClientRect().width - 90);
		})()`)
		if share < c.share-0.04 || share > c.share+0.06 {
			t.Errorf("%d points: the line has %.2f of the width, want %.2f", c.points, share, c.share)
		}
		strip := eval[string](p, `document.querySelector('#plot-verdict figcaption').textContent`)
		if whole := strip == "ok for the whole hour"; whole != (c.points == 360) {
			t.Errorf("%d points: %q", c.points, strip)
		}
		if ticks := eval[int](p, `document.querySelectorAll('#plot-retained .tick.x').length`); ticks < 2 || ticks > 14 {
			t.Errorf("%d points: %d ticks", c.points, ticks)
		}
		p.shoot(fmt.Sprintf("young-%d", c.points))
	}
}
