package slotmon

import (
	"maps"
	"time"
)

// Series remembers what the samples of one server showed, as much as the trends
// of its slots need. Its memory is bounded by the number of slots. It has no
// clock: times are those of the samples. It must be owned by one goroutine.
type Series struct {
	window time.Duration
	// latest is when the last sample was taken; zero before the first.
	latest   time.Time
	systemID string
	wal      LSN
	// server holds the end of WAL, for a slot that does not exist.
	server track
	slots  map[string]*history
	// fingerprint is the first one seen of our slot's publication.
	ours, fingerprint  string
	publicationChanged bool
	// whole is the end of WAL of the sample before the newest one in which the
	// publication was whole and had that fingerprint: the newest one read its
	// own end of WAL after it looked. Nil before the second of such samples.
	whole   *LSN
	wholeAt time.Time
}

// NewSeries returns an empty Series whose rates look back over window.
func NewSeries(window time.Duration) *Series {
	return &Series{window: window, slots: map[string]*history{}}
}

// Add takes the next sample. standbys has, by the name of a slot, what the
// standbys that were asked for it said; the publication in the sample is that
// of the slot ours.
//
// Another system identifier means another server: everything is forgotten. If
// the end of WAL or the time of the sample goes back (a restore, a failover, a
// clock that was set), everything but the publication is. A sample of the same
// time as the last takes its place.
func (s *Series) Add(sample *Sample, standbys map[string][]Standby, ours string) {
	switch known := !s.latest.IsZero(); {
	case s.systemID != "" && sample.Server.SystemID != "" && sample.Server.SystemID != s.systemID:
		*s = *NewSeries(s.window)
	case known && (sample.Server.WAL < s.wal || sample.Taken.Before(s.latest)):
		s.server, s.slots, s.latest = nil, map[string]*history{}, time.Time{}
	}
	now := sample.Taken
	s.comparePublication(sample.Publication, ours)
	s.server = s.server.add(point{at: now, wal: sample.Server.WAL}, s.window)
	present := map[string]bool{}
	for i := range sample.Slots {
		slot := &sample.Slots[i]
		present[slot.Name] = true
		h := s.slots[slot.Name]
		if h == nil || h.remade(slot, now, s.wal) {
			h = &history{}
			s.slots[slot.Name] = h
		}
		h.add(slot, sample, s.window)
		h.compareStandbys(slot, standbys[slot.Name], sample)
	}
	maps.DeleteFunc(s.slots, func(name string, _ *history) bool { return !present[name] })
	s.latest, s.wal = now, sample.Server.WAL
	if id := sample.Server.SystemID; id != "" { // else the role may not see it
		s.systemID = id
	}
}

// Trend returns how the slot moves up to the last sample.
func (s *Series) Trend(slot string) Trend {
	var trend Trend
	if h := s.slots[slot]; h != nil {
		trend = h.trend
	} else {
		trend.WALRate, trend.Over = s.server.rate(point.walPosition), s.server.span()
	}
	if slot == s.ours {
		trend.PublicationChanged = s.publicationChanged
		trend.PublicationWhole, trend.WholeSeen = s.whole, s.wholeAt
	}
	return trend
}

func (s *Series) comparePublication(p *Publication, ours string) {
	if ours != s.ours {
		s.ours, s.fingerprint, s.publicationChanged = ours, "", false
		s.whole, s.wholeAt = nil, time.Time{}
	}
	switch {
	case p == nil || !p.Exists:
	case s.fingerprint == "":
		s.fingerprint = p.Fingerprint
	case p.Fingerprint != s.fingerprint:
		s.publicationChanged = true
	}
	if p != nil && p.whole() && !s.publicationChanged && !s.latest.IsZero() {
		end := s.wal
		s.whole, s.wholeAt = &end, s.latest
	}
}

// history is the memory of one slot.
type history struct {
	last  Slot
	track track
	lag   stretch
	// inactive, copied and notReady are since when; zero while it is not so.
	inactive, copied, notReady time.Time
	trend                      Trend
}

// fastest is the lag that a reader may get through in one second. Decoding
// alone, with nothing sent, takes longer.
const fastest = 1 << 28

// remade tells if the slot was dropped and made anew, or moved by hand, since
// the last sample, as far as it shows: PostgreSQL gives slots no id. It is of
// another kind, a position went back, or a lag is gone that nobody can have
// read in that time. The positions before then say nothing about its rates.
func (h *history) remade(slot *Slot, now time.Time, wal LSN) bool {
	last := &h.last
	if slot.Type != last.Type || slot.Plugin != last.Plugin || slot.Database != last.Database {
		return true
	}
	back := func(from, to *LSN) bool { return from != nil && to != nil && *to < *from }
	if back(last.RestartLSN, slot.RestartLSN) || back(last.ConfirmedFlushLSN, slot.ConfirmedFlushLSN) {
		return true
	}
	from, to := last.ConfirmedFlushLSN, slot.ConfirmedFlushLSN
	if from == nil || to == nil {
		from, to = last.RestartLSN, slot.RestartLSN
	}
	seconds := max(now.Sub(h.track.newest().at).Seconds(), 1)
	return from != nil && to != nil && *from < wal && *to >= wal && float64(wal-*from) > fastest*seconds
}

func (h *history) add(slot *Slot, sample *Sample, window time.Duration) {
	h.last = *slot
	now := sample.Taken
	h.track = h.track.add(point{at: now, wal: sample.Server.WAL, retained: slot.RetainedBytes, confirmed: slot.ConfirmedFlushLSN, active: slot.Active}, window)
	h.trend = Trend{
		Over:          h.track.span(),
		WALRate:       h.track.rate(point.walPosition),
		RetainedRate:  h.track.rate(point.retainedBytes),
		ConfirmedRate: h.track.rate(point.confirmedPosition),
	}
	h.trend.InactiveFor = h.inactiveFor(slot, sample)
	h.trend.CopyFor = h.copyFor(slot, sample)
	h.trend.LagNotFallingFor = h.lag.add(now, sample.Server.WAL, slot.ConfirmedLagBytes, h.trend.WALRate)
}

// startupTime is how long after the start of a server its slots are restored.
const startupTime = time.Minute

// inactiveFor uses the server's memory by the server's clock, else ours. A
// restart of the server begins its memory anew, and no reader came back with it;
// a synced slot on a standby has no reader, and its inactive_since means the end
// of the synchronisation.
func (h *history) inactiveFor(slot *Slot, sample *Sample) *time.Duration {
	if slot.Active || sample.isCopy(slot) {
		h.inactive = time.Time{}
		return nil
	}
	if h.inactive.IsZero() {
		h.inactive = sample.Taken
	}
	inactive := sample.Taken.Sub(h.inactive)
	if since := slot.InactiveSince; since != nil {
		remembered := max(sample.Server.Now.Sub(*since), 0)
		if since.Sub(sample.Server.Started) > startupTime || remembered > inactive {
			inactive = remembered
		}
	}
	return &inactive
}

func (h *history) copyFor(slot *Slot, sample *Sample) *time.Duration {
	if !sample.isCopy(slot) {
		h.copied = time.Time{}
		return nil
	}
	if h.copied.IsZero() {
		h.copied = sample.Taken
	}
	lasted := sample.Taken.Sub(h.copied)
	return &lasted
}

func (h *history) compareStandbys(slot *Slot, standbys []Standby, sample *Sample) {
	ready := len(standbys) == 0 || slot.Failover == nil || !*slot.Failover || sample.Server.InRecovery
	for i := range standbys {
		ready = ready || standbys[i].Ready()
	}
	if ready {
		h.notReady = time.Time{}
		return
	}
	if h.notReady.IsZero() {
		h.notReady = sample.Taken
	}
	lasted := sample.Taken.Sub(h.notReady)
	h.trend.NotReadyFor = &lasted
}
