package slotmon

import (
	"testing"
	"time"
)

// A sample looks at the publication before it reads its end of WAL, so that the
// one before says how far nothing is missing.
func TestTheTrendSaysUpToWhereThePublicationWasWhole(t *testing.T) {
	w := newWorld(t)
	see := func(p *Publication) *LSN {
		w.sample.Publication = p
		return w.after(time.Second, 100, 0).PublicationWhole
	}
	whole := func() *Publication { return &Publication{Exists: true, Inserts: true, Fingerprint: "a"} }
	if see(nil) != nil || see(whole()) == nil {
		t.Fatal("known before the first look, or not after it")
	}
	for name, broken := range map[string]func(*Publication){
		"missing":    func(p *Publication) { *p = Publication{} },
		"no inserts": func(p *Publication) { p.Inserts = false },
		"no table":   func(p *Publication) { p.Missing = []string{"public.outbox"} },
		"filter":     func(p *Publication) { p.Filtered = []string{"public.outbox"} },
		"unlogged":   func(p *Publication) { p.Unlogged = []string{"public.outbox"} },
	} {
		before := w.sample.Server.WAL
		last := see(whole())
		if last == nil || *last != before {
			t.Fatalf("whole up to %v, want the end of WAL of the sample before, %s", last, before)
		}
		p := whole()
		broken(p)
		if see(p); *see(p) != before {
			t.Errorf("%s: whole up to %s, want %s as before", name, *see(p), before)
		}
	}
	before := see(whole())
	altered := whole()
	altered.Fingerprint = "b"
	if see(altered); *see(whole()) != *before {
		t.Errorf("whole up to %s after it was altered, want %s as before", *see(whole()), *before)
	}
	if w.series.Trend("other").PublicationWhole != nil {
		t.Error("it is not the publication of another slot")
	}
}
