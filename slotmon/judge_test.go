package slotmon

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// healthySubject is a slot of cdcpub that is read well, on a server with a
// limit of 100 GiB that writes 10 MiB/s.
func healthySubject() *Subject {
	return &Subject{
		Name: "cdcpub",
		Sample: &Sample{
			Taken: noon,
			Server: Server{
				SystemID: "7", Version: "17.9", VersionNum: 170009, Database: "shop", WAL: 1 << 40, Now: noon,
				MaxSlotWALKeepSize: 100 * gib, Volume: Volume{FreeBytes: new(int64(500 * gib))},
			},
			Slots: []Slot{{
				Name: "cdcpub", Plugin: "pgoutput", Type: "logical", Database: "shop", Active: true,
				RestartLSN: new(LSN(1<<40 - 64*mib)), ConfirmedFlushLSN: new(LSN(1<<40 - mib)),
				WALStatus: new("reserved"), SafeWALSize: new(int64(99 * gib)), CatalogXminAge: new(int64(1000)),
				RetainedBytes: new(int64(64 * mib)), ConfirmedLagBytes: new(int64(mib)),
				Holder: &Holder{
					PID: 4711, User: "cdcpub", ApplicationName: "cdcpub/a", Address: "10.0.0.7",
					FlushLSN: new(LSN(1<<40 - mib)), ReplyTime: new(noon.Add(-12 * time.Second)),
				},
			}},
			Publication: &Publication{Name: "cdcpub", Exists: true, Inserts: true, Fingerprint: "1"},
		},
		Trend: Trend{
			Over: 5 * time.Minute, WALRate: new(10.0 * mib), RetainedRate: new(0.0), ConfirmedRate: new(10.0 * mib),
		},
		Expected:  &Expected{Database: "shop", Publication: "cdcpub"},
		Publisher: &Publisher{State: "streaming", Role: "active", Slot: "cdcpub"},
	}
}

func (s *Subject) theSlot() *Slot { return &s.Sample.Slots[0] }

// dead takes the reader away for so long, with WAL growing.
func (s *Subject) dead(inactive time.Duration, rate float64) {
	slot := s.theSlot()
	slot.Active, slot.Holder = false, nil
	slot.InactiveSince = new(s.Sample.Server.Now.Add(-inactive))
	s.Publisher = nil
	s.Trend.InactiveFor = &inactive
	s.Trend.WALRate, s.Trend.RetainedRate, s.Trend.ConfirmedRate = new(rate), new(rate), new(0.0)
}

func (s *Subject) retains(bytes int64) {
	slot := s.theSlot()
	slot.RetainedBytes, slot.RestartLSN = &bytes, new(s.Sample.Server.WAL-LSN(bytes))
}

func find(r *Report, id FindingID) *Finding {
	all := r.ForAlerts()
	if i := slices.IndexFunc(all, func(f Finding) bool { return f.ID == id }); i >= 0 {
		return &all[i]
	}
	return nil
}

func TestAHealthySlotHasNoFinding(t *testing.T) {
	report := Judge(DefaultLimits(), *healthySubject())
	if report.Verdict != OK || len(report.ForAlerts()) != 0 || report.Culprit != "" {
		t.Fatalf("%+v", report)
	}
	if report.SecondsToLost != nil || report.SecondsToLostWhy != NotGrowing || report.SecondsToFull != nil || report.SecondsToFullWhy != NotGrowing {
		t.Fatalf("times: %+v", report)
	}
}

// A case changes the healthy subject, and says what must be found. The texts
// are parts of summary, cause and cure.
type judgeCase struct {
	name   string
	change func(s *Subject)
	id     FindingID
	want   Severity // OK: no such finding, or only near its limit
	texts  []string
	atOnce bool
}

func checkCases(t *testing.T, cases []judgeCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := healthySubject()
			c.change(s)
			report := Judge(DefaultLimits(), *s)
			if _, err := json.Marshal(report); err != nil {
				t.Fatal(err)
			}
			f := find(&report, c.id)
			if c.want == OK {
				if f != nil && f.Severity != OK {
					t.Fatalf("found %+v", f)
				}
				return
			}
			if f == nil {
				t.Fatalf("not found, but %+v", report.Findings)
			}
			if f.Severity != c.want || f.AtOnce != c.atOnce {
				t.Errorf("severity %s at once %t, want %s %t", f.Severity, f.AtOnce, c.want, c.atOnce)
			}
			if c.want != Info && (f.Hold != c.want && !f.Hold.Worse(c.want) && f.Hold != Critical || report.Verdict == OK) {
				t.Errorf("hold %s, verdict %s", f.Hold, report.Verdict)
			}
			text := f.Summary + "\n" + f.Cause + "\n" + f.Cure
			for _, part := range c.texts {
				if !strings.Contains(text, part) {
					t.Errorf("%q is not in\n%s", part, text)
				}
			}
		})
	}
}

func TestWhatIsCriticalAtOnce(t *testing.T) {
	lost := func(reason string) func(s *Subject) {
		return func(s *Subject) {
			s.dead(time.Hour, 1e6)
			slot := s.theSlot()
			slot.WALStatus, slot.RestartLSN, slot.RetainedBytes, slot.SafeWALSize = new("lost"), nil, nil, nil
			slot.ConfirmedLagBytes = new(int64(120 * gib))
			slot.ConfirmedFlushLSN = new(LSN(1<<40 - 120*gib))
			if reason != "" {
				slot.InvalidationReason = &reason
			}
		}
	}
	watched := func(change func(s *Subject)) func(s *Subject) {
		return func(s *Subject) { change(s); s.Expected = nil }
	}
	missing := func(s *Subject) { s.Sample.Slots = nil }
	plugin := func(s *Subject) { s.theSlot().Plugin = "wal2json" }
	database := func(s *Subject) { s.theSlot().Database = "crm" }
	twoPhase := func(s *Subject) { s.theSlot().TwoPhase = true }
	publication := func(change func(p *Publication)) func(s *Subject) {
		return func(s *Subject) { change(s.Sample.Publication) }
	}
	on := func(version int, change func(s *Subject)) func(s *Subject) {
		return func(s *Subject) {
			s.Sample.Server.Version, s.Sample.Server.VersionNum = fmt.Sprintf("%d.1", version), version*10_000+1
			change(s)
		}
	}
	dropped := publication(func(p *Publication) { *p = Publication{Name: "cdcpub"} })
	changed := func(s *Subject) { s.Trend.PublicationChanged = true }
	checkCases(t, []judgeCase{
		{"missing", missing, SlotMissing, Critical, []string{"does not exist", "`cdcpub slot create cdcpub`"}, true},
		{"missing, only asked for", watched(missing), SlotMissing, Unknown, []string{"`cdcpub slot list`"}, false},
		{"lost before 17", lost(""), SlotLost, Critical, []string{"max_slot_wal_keep_size (100 GiB)", "WAL from E2/0 to 100/0", "(120 GiB)", "`cdcpub slot drop cdcpub`"}, true},
		{"lost, WAL removed", lost("wal_removed"), SlotLost, Critical, []string{"(wal_removed)"}, true},
		{"lost, idle", lost("idle_timeout"), SlotLost, Critical, []string{"idle_replication_slot_timeout"}, true},
		{"lost, rows removed", lost("rows_removed"), SlotLost, Critical, []string{"catalog rows"}, true},
		{"lost, wal_level", lost("wal_level_insufficient"), SlotLost, Critical, []string{"wal_level"}, true},
		{"lost, unheard of", lost("moon_phase"), SlotLost, Critical, []string{"invalidated: moon_phase"}, true},
		{"lost, watched", watched(lost("")), SlotLost, Critical, []string{"new slot"}, true},
		{"conflicting", func(s *Subject) { s.theSlot().Conflicting = new(true) }, SlotLost, Critical, []string{"conflicted with recovery"}, true},
		{"conflicting copy on a standby", func(s *Subject) {
			s.theSlot().Conflicting, s.theSlot().Synced, s.Sample.Server.InRecovery = new(true), new(true), true
		}, SlotLost, Critical, []string{"next synchronisation"}, true},
		{"unreserved", func(s *Subject) { s.theSlot().WALStatus = new("unreserved") }, SlotUnreserved, Critical, []string{"next checkpoint", "SELECT pg_reload_conf()"}, true},
		{"safe size negative", func(s *Subject) { s.retains(101 * gib); s.theSlot().SafeWALSize = new(int64(-7 * mib)) }, SlotUnreserved, Critical, []string{"safe_wal_size -7 MiB", "= '204GB'"}, true},
		{"safe size zero", func(s *Subject) { s.theSlot().SafeWALSize = new(int64(0)) }, SlotUnreserved, Critical, nil, true},
		{"safe size positive", func(s *Subject) { s.theSlot().SafeWALSize = new(int64(1)) }, SlotUnreserved, OK, nil, false},
		{"safe size NULL", func(s *Subject) { s.theSlot().SafeWALSize = nil }, SlotUnreserved, OK, nil, false},
		{"plugin", plugin, SlotWrongPlugin, Critical, []string{"wal2json"}, true},
		{"physical", func(s *Subject) { s.theSlot().Type, s.theSlot().Plugin = "physical", "" }, SlotWrongPlugin, Critical, []string{"a physical slot"}, true},
		{"plugin, watched", watched(plugin), SlotWrongPlugin, OK, nil, false},
		{"database", database, SlotWrongDatabase, Critical, []string{"crm", "shop"}, true},
		{"database, watched", watched(database), SlotWrongDatabase, OK, nil, false},
		{"two_phase", twoPhase, SlotTwoPhase, Critical, []string{"two_phase", "`cdcpub slot drop cdcpub`"}, true},
		{"two_phase of another plugin's slot", func(s *Subject) { twoPhase(s); plugin(s) }, SlotTwoPhase, OK, nil, false},
		{"two_phase of another database's slot", func(s *Subject) { twoPhase(s); database(s) }, SlotTwoPhase, OK, nil, false},
		{"two_phase, watched", watched(twoPhase), SlotTwoPhase, OK, nil, false},
		{"ahead", func(s *Subject) { s.theSlot().ConfirmedLagBytes = new(int64(-5 * mib)) }, SlotAhead, Critical, []string{"5 MiB past its end"}, true},
		{"ahead, watched", watched(func(s *Subject) { s.theSlot().ConfirmedLagBytes = new(int64(-1)) }), SlotAhead, Critical, nil, true},
		{"at the end", func(s *Subject) { s.theSlot().ConfirmedLagBytes = new(int64(0)) }, SlotAhead, OK, nil, false},
		{"lag NULL", func(s *Subject) { s.theSlot().ConfirmedLagBytes = nil }, SlotAhead, OK, nil, false},
		{"no publication", dropped, PublicationMissing, Critical, []string{"publication cdcpub, which does not exist"}, true},
		{"no publication, 18", on(18, dropped), PublicationMissing, Critical, []string{"PostgreSQL 18.1 passes over the first row with a notice, which cdcpub takes for an error and stops, so nothing is skipped", "A slot older than its publication"}, true},
		{"no publication, 17", on(17, dropped), PublicationMissing, Critical, []string{"PostgreSQL 17.1 stops with an error at the first row, so nothing is skipped", "A slot older than its publication"}, true},
		{"publication not seen", func(s *Subject) { s.Sample.Publication = nil }, PublicationMissing, OK, nil, false},
		{"no publication, watched", watched(publication(func(p *Publication) { p.Exists = false })), PublicationMissing, OK, nil, false},
		{"no publication and no slot", func(s *Subject) { missing(s); s.Sample.Publication.Exists = false }, PublicationMissing, Critical, nil, true},
		{"table", publication(func(p *Publication) { p.Missing = []string{"public.outbox"} }), PublicationTables, Critical, []string{`ALTER PUBLICATION "cdcpub" ADD TABLE public.outbox`}, true},
		{"partition", publication(func(p *Publication) {
			p.Missing, p.ByPartition = []string{"public.outbox_2"}, []string{"public.outbox"}
		}), PublicationTables, Critical, []string{"does not contain public.outbox_2", `ALTER PUBLICATION "cdcpub" ADD TABLE public.outbox;`}, true},
		{"table, and where from", func(s *Subject) {
			s.Sample.Publication.Missing = []string{"public.outbox"}
			s.Trend.PublicationWhole, s.Trend.WholeSeen = new(LSN(0xFF)), noon
		}, PublicationTables, Critical, []string{"nothing written before LSN 0/FF (2026-11-30 12:00:00 UTC) is affected"}, true},
		{"filter", publication(func(p *Publication) { p.Filtered = []string{"public.outbox"} }), PublicationTables, Critical, []string{"row filter"}, true},
		{"unlogged", publication(func(p *Publication) { p.Unlogged = []string{"public.outbox"} }), PublicationTables, Critical, []string{"SET LOGGED"}, true},
		{"inserts", publication(func(p *Publication) { p.Inserts = false }), PublicationTables, Critical, []string{"publish = 'insert'"}, true},
		{"publication changed, 18", on(18, changed), PublicationChanged, Critical, []string{"altered since the monitor began", "if it was dropped and created again, PostgreSQL 18.1 passes over"}, true},
		{"publication changed, 17", on(17, changed), PublicationChanged, Critical, []string{"altered since the monitor began", "if it was dropped and created again, PostgreSQL 17.1 stops with an error at the first row, and nothing is skipped", "older than its publication"}, true},
		{"publisher blocked", func(s *Subject) {
			s.Publisher.State, s.Publisher.Role, s.Publisher.Stall, s.Publisher.StallSince = "blocked", "standby", "row 7 has no key", noon.Add(-time.Hour)
		}, PublisherBlocked, Critical, []string{"row 7 has no key, since 2026-11-30 11:00:00 UTC"}, true},
		{"another slot's publisher blocked", func(s *Subject) { s.Publisher.State, s.Publisher.Slot = "blocked", "other" }, PublisherBlocked, OK, nil, false},
	})
}

func TestWhatIsJudgedByItsLimits(t *testing.T) {
	const day = 24 * time.Hour
	retains := func(bytes int64) func(s *Subject) {
		return func(s *Subject) { s.retains(bytes) }
	}
	safe := func(bytes int64) func(s *Subject) {
		return func(s *Subject) { s.theSlot().SafeWALSize = &bytes }
	}
	dead := func(inactive time.Duration, rate float64, change func(s *Subject)) func(s *Subject) {
		return func(s *Subject) { s.dead(inactive, rate); change(s) }
	}
	nothing := func(*Subject) {}
	checkCases(t, []judgeCase{
		{"retained", retains(10 * gib), RetainedWAL, OK, nil, false},
		{"retained more", retains(12 * gib), RetainedWAL, Warning, []string{"retains 12 GiB of WAL, more than 10 GiB", "PID 4711 (cdcpub/a, user cdcpub, from 10.0.0.7) is connected and confirms 10 MiB/s, while WAL is written at 10 MiB/s", "`cdcpub slot status cdcpub`"}, false},
		{"retained much", retains(51 * gib), RetainedWAL, Critical, []string{"51 GiB", "50 GiB"}, false},
		{"retained NULL", func(s *Subject) { s.theSlot().RetainedBytes = nil }, RetainedWAL, OK, nil, false},
		{"share", safe(25 * gib), RetainedShare, OK, nil, false},
		{"share more", safe(20 * gib), RetainedShare, Warning, []string{"80 % of max_slot_wal_keep_size (100 GiB), more than 75 %"}, false},
		{"share just more", safe(2479 * gib / 100), RetainedShare, Warning, []string{"75.2 % of", "more than 75 %"}, false},
		{"share much", safe(5 * gib), RetainedShare, Critical, []string{"95 %", "90 %"}, false},
		{"share by retained WAL", func(s *Subject) { s.theSlot().SafeWALSize = nil; s.retains(80 * gib) }, RetainedShare, Warning, []string{"80 %"}, false},
		{"share without a limit", func(s *Subject) {
			s.retains(80 * gib)
			s.Sample.Server.MaxSlotWALKeepSize = -1
			s.theSlot().SafeWALSize = nil
		}, RetainedShare, OK, nil, false},
		{"lost in days", dead(time.Minute, mib, safe(99*gib)), TimeToLost, OK, nil, false},
		{"lost in hours", dead(time.Minute, mib, safe(20*gib)), TimeToLost, Warning, []string{"in about 5 h 41 min (limit 6 h): 20 GiB are left until max_slot_wal_keep_size, and retained WAL grows by 1 MiB/s", "nobody has been connected to the slot since 2026-11-30 11:59:00 UTC", "`cdcpub run`", "`cdcpub slot drop cdcpub`", "ALTER SYSTEM SET max_slot_wal_keep_size = '202GB'"}, false},
		{"lost in minutes", dead(time.Minute, mib, safe(2*gib)), TimeToLost, Critical, []string{"34 min 8 s"}, false},
		{"lost by idle timeout", dead(day-30*time.Minute, mib, func(s *Subject) { s.Sample.Server.IdleSlotTimeout = day }), TimeToLost, Critical, []string{"in about 30 min", "idle_replication_slot_timeout is 1 d"}, false},
		{"full in days", dead(time.Minute, mib, nothing), TimeToFull, OK, nil, false},
		{"full in hours", dead(time.Minute, 50*mib, nothing), TimeToFull, Warning, []string{"in about 2 h 50 min (limit 6 h): 500 GiB are free", "gives up the slot before"}, false},
		{"full in minutes", dead(time.Minute, 10*mib, func(s *Subject) {
			s.Sample.Server.MaxSlotWALKeepSize, s.theSlot().SafeWALSize, s.Sample.Server.Volume.FreeBytes = -1, nil, new(int64(10*gib))
		}), TimeToFull, Critical, []string{"17 min 4 s", "set max_slot_wal_keep_size"}, false},
		{"full, unknown", dead(time.Minute, 10*mib, func(s *Subject) { s.Sample.Server.Volume = Volume{Unknown: "x"} }), TimeToFull, OK, nil, false},
		{"inactive shortly", dead(2*time.Minute, mib, nothing), SlotInactive, OK, nil, false},
		{"inactive", dead(3*time.Minute, mib, nothing), SlotInactive, Warning, []string{"no reader for 3 min, more than 2 min"}, false},
		{"inactive long", dead(time.Hour, mib, nothing), SlotInactive, Critical, []string{"1 h", "10 min"}, false},
		{"inactive, temporary", dead(time.Hour, mib, func(s *Subject) { s.theSlot().Temporary = true }), SlotInactive, OK, nil, false},
		{"inactive, synced on a standby", dead(time.Hour, mib, func(s *Subject) { s.theSlot().Synced, s.Sample.Server.InRecovery = new(true), true }), SlotInactive, OK, nil, false},
		{"inactive, once synced and promoted", dead(time.Hour, mib, func(s *Subject) { s.theSlot().Synced = new(true) }), SlotInactive, Critical, nil, false},
		{"inactive, holds nothing", dead(time.Hour, mib, func(s *Subject) { s.theSlot().RestartLSN, s.theSlot().RetainedBytes = nil, nil }), SlotInactive, OK, nil, false},
		{"lag falls", func(s *Subject) { s.Trend.LagNotFallingFor = nil }, ConfirmedLag, OK, nil, false},
		{"lag does not fall", func(s *Subject) {
			s.theSlot().ConfirmedLagBytes, s.Trend.LagNotFallingFor, s.Trend.ConfirmedRate = new(int64(3*gib)), new(6*time.Minute), new(0.0)
		}, ConfirmedLag, Warning, []string{"3 GiB that has not fallen for 6 min", "confirms nothing; its flush_lsn is FF/FFF00000, its last status 12 s old", "pg_terminate_backend(4711)"}, false},
		{"lag grows", func(s *Subject) {
			s.theSlot().ConfirmedLagBytes, s.Trend.LagNotFallingFor, s.Trend.ConfirmedRate = new(int64(3*gib)), new(time.Hour), new(2.0*mib)
		}, ConfirmedLag, Critical, []string{"confirms only 2 MiB/s of the 10 MiB/s that are written"}, false},
		{"catalog_xmin", func(s *Subject) { s.theSlot().CatalogXminAge = new(int64(60_000_000)) }, CatalogXminAge, Warning, []string{"60,000,000 transactions, more than 50,000,000"}, false},
		{"catalog_xmin old", func(s *Subject) { s.theSlot().CatalogXminAge = new(int64(300_000_000)) }, CatalogXminAge, Critical, nil, false},
		{"catalog_xmin of an older slot", func(s *Subject) {
			s.theSlot().CatalogXminAge = new(int64(60_000_000))
			s.Sample.Slots = append(s.Sample.Slots, Slot{Name: "old", CatalogXminAge: new(int64(61_000_000))})
		}, CatalogXminAge, Warning, []string{"slot old is older", "`cdcpub slot status old`"}, false},
		{"catalog_xmin NULL", func(s *Subject) { s.theSlot().CatalogXminAge = nil }, CatalogXminAge, OK, nil, false},
		{"stalled shortly", func(s *Subject) {
			s.Publisher.Stall, s.Publisher.StallSince = "topic t: no leader", noon.Add(-time.Minute)
		}, PublisherStalled, OK, nil, false},
		{"stalled", func(s *Subject) {
			s.Publisher.Stall, s.Publisher.StallSince = "topic t: no leader", noon.Add(-2*time.Minute)
		}, PublisherStalled, Warning, []string{"for 2 min, more than 1 min", "this publisher publishes nothing: topic t: no leader, since 2026-11-30 11:58:00 UTC"}, false},
		{"stalled long", func(s *Subject) { s.Publisher.Stall, s.Publisher.StallSince = "c", noon.Add(-time.Hour) }, PublisherStalled, Critical, nil, false},
		{"standing by", func(s *Subject) {
			s.Publisher.State, s.Publisher.Stall, s.Publisher.StallSince = "standby", "c", noon.Add(-time.Hour)
		}, PublisherStalled, OK, nil, false},
	})
}
