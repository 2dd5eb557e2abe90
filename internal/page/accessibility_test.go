package page

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// tree is what assistive technology is given: the names by role.
func (p *tab) tree() map[string][]string {
	p.Helper()
	nodes := command(p, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes
	names := map[string][]string{}
	for _, node := range nodes {
		if node.Ignored || node.Role == nil {
			continue
		}
		names[axText(node.Role)] = append(names[axText(node.Role)], axText(node.Name))
	}
	return names
}

func axText(v *accessibility.Value) (text string) {
	if v != nil {
		_ = json.Unmarshal([]byte(v.Value), &text) // another type has no text
	}
	return text
}

func TestThePageHasTheStructureThatItShows(t *testing.T) {
	browser := chromium(t)
	for _, width := range []int64{360, 1920} { // cards must keep the roles of the table
		_, _, server := tell(t, "dying")
		p := open(t, browser, server.URL, screen{width: width, height: 1000, scheme: "light"})
		p.awaitShown()
		if lang := eval[string](p, `document.documentElement.lang`); lang != "en" {
			t.Errorf("the language is %q", lang)
		}
		tree := p.tree()
		for _, role := range []string{"banner", "main", "contentinfo"} {
			if len(tree[role]) != 1 {
				t.Errorf("%d: %d landmarks %s", width, len(tree[role]), role)
			}
		}
		want := []string{"Publisher", "Alerts", "The last hour", "Slots", "Partitions with something unacknowledged", "Servers"}
		if !slices.Equal(tree["region"], want) {
			t.Errorf("%d: regions %q", width, tree["region"])
		}
		if h1 := eval[[]string](p, `[...document.querySelectorAll('h1')].map((e) => e.textContent)`); len(h1) != 1 || h1[0] != "cdcpub: CRITICAL" {
			t.Errorf("%d: h1 %q", width, h1)
		}
		if !slices.Equal(tree["figure"], []string{"Verdict", "Retained WAL", "Confirmed lag", "Throughput", "Latency, p99"}) &&
			!slices.Equal(tree["Figure"], []string{"Verdict", "Retained WAL", "Confirmed lag", "Throughput", "Latency, p99"}) {
			t.Errorf("%d: figures %q", width, tree["figure"])
		}
		if len(tree["slider"]) != 5 || slices.Contains(tree["slider"], "") {
			t.Errorf("%d: sliders %q", width, tree["slider"])
		}
		if !slices.Equal(tree["table"], []string{"Slots", "Partitions with something unacknowledged", "Servers"}) {
			t.Errorf("%d: tables %q", width, tree["table"])
		}
		if len(tree["columnheader"]) != 7+5+6 || len(tree["rowheader"]) != 1+2+1 || len(tree["cell"]) < 6+8+5 {
			t.Errorf("%d: %d column headers, %d row headers, %d cells", width, len(tree["columnheader"]), len(tree["rowheader"]), len(tree["cell"]))
		}
		// Chromium keeps the roles of a table that is laid out as blocks; not all do.
		if n := eval[int](p, `document.querySelectorAll(':is(table, thead, tbody, tr, th, td):not([role])').length`); n != 0 {
			t.Errorf("%d: %d parts of tables do not state their role", width, n)
		}
		if len(tree["article"]) != 2 || len(tree["status"]) != 1 {
			t.Errorf("%d: %d articles, %d status regions", width, len(tree["article"]), len(tree["status"]))
		}
		if levels := eval[string](p, `[...document.querySelectorAll('h1, h2, h3')].map((e) => e.tagName[1]).join('')`); strings.Contains(levels, "13") || levels[0] != '1' {
			t.Errorf("%d: the levels of the headings are %s", width, levels)
		}
		if bad := eval[int](p, `document.querySelectorAll('svg:not([aria-hidden=true]), img:not([alt]), [tabindex]:not([tabindex="0"])').length`); bad != 0 {
			t.Errorf("%d: %d pictures without a text, or tab stops out of order", width, bad)
		}
	}
}

func TestTabReachesEverythingInOrderAndShowsWhereItIs(t *testing.T) {
	browser := chromium(t)
	_, _, server := tell(t, "dying")
	p := open(t, browser, server.URL, screen{width: 800, height: 1000, scheme: "dark"})
	p.awaitShown()
	const label = `((e) => e.getAttribute('aria-label') ?? e.textContent)`
	want := eval[[]string](p, `[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')].filter((e) => e.getClientRects().length).map(`+label+`)`)
	var got []string
	for range want {
		run(p, chromedp.KeyEvent(kb.Tab))
		got = append(got, eval[string](p, label+`(document.activeElement)`))
		if outline := eval[string](p, `getComputedStyle(document.activeElement).outlineStyle`); outline != "solid" {
			t.Errorf("%q has the focus and the outline %q", got[len(got)-1], outline)
		}
	}
	if !slices.Equal(got, want) || len(want) != 9 {
		t.Errorf("tab reaches %q\nwant %q", got, want)
	}
}
