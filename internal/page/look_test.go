package page

import (
	"fmt"
	"strings"
	"testing"
)

var words = map[string]string{"healthy": "OK", "minute": "OK", "dying": "CRITICAL", "watch": "CRITICAL", "empty": "UNKNOWN", "long": "WARNING", "lost": "CRITICAL", "rights": "OK"}

// TestThePageFitsEveryScreen looks at every story on a phone, a tablet and a
// wall, in both schemes.
func TestThePageFitsEveryScreen(t *testing.T) {
	browser := chromium(t)
	screens := []screen{{360, 740, "light"}, {800, 1100, "light"}, {1920, 1080, "light"}}
	for story := range stories {
		_, _, server := tell(t, story)
		for _, s := range screens {
			name := fmt.Sprintf("%s-%d", story, s.width)
			t.Run(name, func(t *testing.T) {
				p := open(t, browser, server.URL, s)
				p.awaitShown()
				if word := eval[string](p, `document.getElementById('word').textContent`); word != words[story] {
					t.Errorf("the verdict is %q", word)
				}
				p.fits()
				p.hasLabels(story)
				for _, scheme := range []string{"light", "dark"} {
					p.prefer(scheme)
					p.contrasts()
					p.shoot(name + "-" + scheme)
				}
				p.quiet()
			})
		}
	}
}

// fits asserts that nothing is wider than the screen: no scrolling sideways, of
// the page or of a part, and nothing cut off.
func (p *tab) fits() {
	p.Helper()
	wide := eval[[]string](p, `(() => {
		const wide = [];
		const screen = document.documentElement;
		if (screen.scrollWidth > screen.clientWidth) wide.push('the page: ' + screen.scrollWidth);
		for (const e of document.body.querySelectorAll('*:not(svg *)')) {
			if (e.closest('.hidden, [hidden], thead') || e.getClientRects().length === 0) continue;
			const box = e.getBoundingClientRect();
			if (box.right > screen.clientWidth + 0.5 || box.left < -0.5) wide.push(e.tagName + '.' + e.className + ' ' + e.textContent.slice(0, 40));
			if (getComputedStyle(e).overflowX !== 'visible' && e.scrollWidth > e.clientWidth && !(e instanceof SVGElement)) wide.push('scrolls: ' + e.className);
		}
		return wide;
	})()`)
	for _, element := range wide {
		p.Errorf("wider than the screen: %s", element)
	}
}

// contrasts asserts WCAG 2.2 AA of what is shown: 4.5 to 1 for text (1.4.3),
// 3 to 1 for the lines and shapes that carry meaning (1.4.11).
func (p *tab) contrasts() {
	p.Helper()
	weak := eval[[]string](p, `(() => {
		const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
		const rgba = (colour) => {
			canvas.clearRect(0, 0, 1, 1);
			canvas.fillStyle = colour;
			canvas.fillRect(0, 0, 1, 1);
			return canvas.getImageData(0, 0, 1, 1).data;
		};
		const luminance = ([r, g, b]) => {
			const linear = [r, g, b].map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
			return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
		};
		const ratio = (a, b) => {
			const [x, y] = [luminance(rgba(a)), luminance(rgba(b))].sort((m, n) => n - m);
			return (x + 0.05) / (y + 0.05);
		};
		const background = (e) => {
			for (; e; e = e.parentElement) {
				const colour = getComputedStyle(e).backgroundColor;
				if (rgba(colour)[3] === 255) return colour;
			}
			return 'white';
		};
		const weak = new Set();
		const check = (e, colour, least, what) => {
			const r = ratio(colour, background(e));
			if (r < least) weak.add(what + ' ' + colour + ' on ' + background(e) + ' is ' + r.toFixed(2));
		};
		let texts = 0;
		const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (walker.nextNode()) {
			const e = walker.currentNode.parentElement;
			if (!walker.currentNode.data.trim() || e.closest('.hidden, noscript, title, [hidden]') || e.getClientRects().length === 0) continue;
			texts++;
			check(e, e instanceof SVGElement ? getComputedStyle(e).fill : getComputedStyle(e).color, 4.5, walker.currentNode.data.slice(0, 30));
		}
		let shapes = 0;
		for (const e of document.querySelectorAll('.line:not(.rest), .limit')) { shapes++; check(e, getComputedStyle(e).stroke, 3, 'line ' + e.getAttribute('class')); }
		for (const e of document.querySelectorAll('.run, .body')) { shapes++; check(e, getComputedStyle(e).fill, 3, 'shape ' + e.getAttribute('class')); }
		if (texts < 20 || shapes < 3) weak.add('only ' + texts + ' texts and ' + shapes + ' shapes were looked at');
		return [...weak];
	})()`)
	for _, pair := range weak {
		p.Errorf("too little contrast: %s", pair)
	}
}

// hasLabels asserts that axes have units and times, and that plots say in words
// what they show.
func (p *tab) hasLabels(story string) {
	p.Helper()
	plots := eval[[]struct {
		ID, Title, Caption string
		Y, X               []string
	}](p, `[...document.querySelectorAll('#plots figure:not([hidden]):not(#plot-verdict)')].map((f) => ({
		ID: f.id,
		Title: document.getElementById(f.getAttribute('aria-labelledby')).textContent,
		Caption: f.querySelector('figcaption').textContent,
		Y: [...f.querySelectorAll('.tick.y')].map((e) => e.textContent),
		X: [...f.querySelectorAll('.tick.x')].map((e) => e.textContent),
	}))`)
	want := 4
	if story == "watch" || story == "long" || story == "rights" {
		want = 2
	}
	if len(plots) != want {
		p.Errorf("%d plots, want %d", len(plots), want)
	}
	units := map[string][]string{
		"plot-retained": {"B", "KiB", "MiB", "GiB"}, "plot-lag": {"B", "KiB", "MiB", "GiB"},
		"plot-rate": {"/s"}, "plot-latency": {"ms", "s"},
	}
	for _, plot := range plots {
		if plot.Title == "" || len(plot.X) < 2 || len(plot.X[0]) != len("12:00") {
			p.Errorf("%+v", plot)
		}
		if story == "empty" {
			if plot.Caption != "nothing measured in this hour" || len(plot.Y) != 0 {
				p.Errorf("%+v", plot)
			}
			continue
		}
		for _, word := range []string{"now ", "min ", "max "} {
			if !strings.Contains(plot.Caption, word) {
				p.Errorf("%s: the caption %q has no %q", plot.ID, plot.Caption, word)
			}
		}
		if len(plot.Y) < 3 {
			p.Errorf("%s has %d ticks", plot.ID, len(plot.Y))
		}
		for _, label := range plot.Y {
			if !endsWithOne(label, units[plot.ID]) {
				p.Errorf("%s: the label %q has no unit", plot.ID, label)
			}
		}
	}
}

func endsWithOne(text string, endings []string) bool {
	for _, ending := range endings {
		if strings.HasSuffix(text, ending) {
			return true
		}
	}
	return false
}
