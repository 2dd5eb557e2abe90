package monitor

import (
	"context"
	"slices"
	"time"

	"github.com/cdcpub/cdcpub/slotmon"
)

// seriesWindow is how far back rates look.
const seriesWindow = 5 * time.Minute

// watcher looks after one server. Everything belongs to the goroutine of run.
type watcher struct {
	monitor *Monitor
	index   int
	target  *Target
	series  *slotmon.Series
	alerts  *slotmon.Alerts
	// last is the newest sample, nil before the first.
	last *slotmon.Sample
}

func newWatcher(m *Monitor, i int) *watcher {
	return &watcher{
		monitor: m, index: i, target: &m.config.Targets[i],
		series: slotmon.NewSeries(seriesWindow), alerts: slotmon.NewAlerts(m.config.Timing),
	}
}

func (w *watcher) run(ctx context.Context) {
	ticker := time.NewTicker(w.monitor.config.Interval)
	defer ticker.Stop()
	for {
		w.round(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// round takes a sample, judges it and tells of what has changed.
func (w *watcher) round(ctx context.Context) {
	sample, err := bounded(ctx, w.monitor.config.Timeout, w.target.Sample)
	if ctx.Err() != nil {
		return // what was cut short says nothing about the server
	}
	if err != nil {
		w.unreachable(err.Error())
		return
	}
	w.last = sample
	standbys := w.standbys(ctx, sample)
	w.series.Add(sample, standbys, w.target.Slot)

	server := Server{Name: w.target.Name, Up: true, Asked: sample.Taken, Sample: sample, Slots: []Slot{}}
	changed := w.alerts.Update(sample.Taken, w.target.Name, "", nil)
	present := []string{""}
	for _, name := range w.judged(sample) {
		slot := w.judge(name, slotmon.Subject{Sample: sample, Trend: w.series.Trend(name), Standbys: standbys[name]})
		slot.Slot, slot.Standbys = sample.FindSlot(name), standbys[name]
		server.add(slot)
		if slot.Ours && w.target.Judged != nil {
			w.target.Judged(slot.Report)
		}
		changed = append(changed, w.alerts.Update(sample.Taken, w.target.Name, name, slot.Report.ForAlerts())...)
		present = append(present, name)
	}
	changed = append(changed, w.alerts.Forget(sample.Taken, w.target.Name, present)...)
	w.conclude(server, changed)
}

// unreachable judges a server that gave no sample. The alerts of its slots stay
// as they are.
func (w *watcher) unreachable(why string) {
	server := Server{Name: w.target.Name, Asked: time.Now(), Unreachable: why, Sample: w.last, Verdict: slotmon.Unknown, Slots: []Slot{}}
	for _, name := range w.judged(w.last) {
		slot := w.judge(name, slotmon.Subject{Unreachable: why})
		if w.last != nil {
			slot.Slot = w.last.FindSlot(name)
		}
		server.add(slot)
	}
	itself := slotmon.Judge(w.monitor.config.Limits(""), slotmon.Subject{Unreachable: why})
	w.conclude(server, w.alerts.Update(time.Now(), w.target.Name, "", itself.ForAlerts()))
}

func (w *watcher) conclude(server Server, changed []slotmon.Alert) {
	w.monitor.keep(w.index, server, w.alerts.Active())
	if len(changed) > 0 {
		w.monitor.config.Changed(changed)
	}
}

// judge completes the subject and has it judged.
func (w *watcher) judge(name string, subject slotmon.Subject) Slot {
	subject.Name = name
	ours := name == w.target.Slot
	if ours {
		subject.Expected = w.target.Expected
		if w.target.Publisher != nil {
			subject.Publisher = w.target.Publisher()
		}
	}
	return Slot{Name: name, Ours: ours, Report: slotmon.Judge(w.monitor.config.Limits(name), subject)}
}

// judged names the slots to judge: ours first, whether or not it exists.
func (w *watcher) judged(sample *slotmon.Sample) []string {
	var names []string
	if w.target.Slot != "" {
		names = append(names, w.target.Slot)
	}
	if w.target.Alone || sample == nil {
		return names
	}
	for i := range sample.Slots {
		if name := sample.Slots[i].Name; name != w.target.Slot {
			names = append(names, name)
		}
	}
	return names
}

// standbys asks the standbys, when there is a failover slot to ask for, and
// returns their answers by slot.
func (w *watcher) standbys(ctx context.Context, primary *slotmon.Sample) map[string][]slotmon.Standby {
	failover := slices.DeleteFunc(w.judged(primary), func(name string) bool {
		slot := primary.FindSlot(name)
		return slot == nil || slot.Failover == nil || !*slot.Failover || primary.Server.InRecovery
	})
	if len(failover) == 0 || len(w.target.Standbys) == 0 {
		return nil
	}
	answers := map[string][]slotmon.Standby{}
	for _, standby := range w.target.Standbys {
		sample, err := bounded(ctx, w.monitor.config.Timeout, standby.Sample)
		for _, name := range failover {
			answer := slotmon.Standby{Address: standby.Name}
			if err != nil {
				answer.Unreachable = err.Error()
			} else {
				answer = slotmon.StandbyAt(standby.Name, primary, sample, name)
			}
			answers[name] = append(answers[name], answer)
		}
	}
	return answers
}

// add appends a slot; the worst of them is the server's verdict.
func (s *Server) add(slot Slot) {
	s.Slots = append(s.Slots, slot)
	if s.Verdict.Worse(slot.Report.Verdict) {
		s.Verdict = slot.Report.Verdict
	}
}
