package slotmon

import (
	"strings"
	"testing"
	"time"
)

func TestAnUnreachableServerIsUnknownAndNeverOK(t *testing.T) {
	for name, s := range map[string]Subject{
		"refused":      {Name: "cdcpub", Unreachable: "connection refused"},
		"no sample":    {Name: "cdcpub"},
		"server alone": {Unreachable: "timeout"},
		"old sample":   {Name: "cdcpub", Sample: healthySubject().Sample, Unreachable: "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			report := Judge(DefaultLimits(), s)
			if report.Verdict != Unknown || len(report.Findings) != 1 || report.Findings[0].ID != ServerUnreachable || !strings.Contains(report.Findings[0].Summary, s.Unreachable) {
				t.Fatalf("%+v", report)
			}
		})
	}
}

func TestTheFailoverSlotNeedsOneStandbyThatIsReady(t *testing.T) {
	ready := Standby{Address: "b:5432", Slot: &Slot{Synced: new(true)}}
	bad := []Standby{
		{Address: "c:5432", Unreachable: "connection refused"},
		{Address: "d:5432"},
		{Address: "e:5432", Slot: &Slot{Synced: new(true), Temporary: true}},
		{Address: "f:5432", Slot: &Slot{Synced: new(true), WALStatus: new("lost")}},
		{Address: "g:5432", Slot: &Slot{}},
	}
	failover := func(lasted time.Duration, standbys ...Standby) func(s *Subject) {
		return func(s *Subject) {
			s.theSlot().Failover, s.Standbys, s.Trend.NotReadyFor = new(true), standbys, &lasted
		}
	}
	checkCases(t, []judgeCase{
		{"none configured", failover(0), FailoverNotReady, Info, []string{"no standby is configured"}, false},
		{"just now", failover(time.Minute, bad...), FailoverNotReady, OK, nil, false},
		{"long", failover(time.Hour, bad...), FailoverNotReady, Warning, []string{
			"no standby has had it ready for 1 h, more than 5 min", "c:5432: cannot be asked: connection refused", "d:5432: does not have the slot",
			"e:5432: its copy is still temporary", "f:5432: its copy is invalidated", "g:5432: has a slot of that name of its own", "sync_replication_slots",
		}, false},
		{"one ready", failover(time.Hour, append(bad, ready)...), FailoverNotReady, OK, nil, false},
		{"on the standby", func(s *Subject) { failover(time.Hour, bad...)(s); s.Sample.Server.InRecovery = true }, FailoverNotReady, OK, nil, false},
		{"no failover slot", func(s *Subject) { s.Standbys = bad }, FailoverNotReady, OK, nil, false},
	})
}

// holdBack lets a transaction hold restart_lsn while the reader keeps up.
func holdBack(s *Subject, retained int64, transactions ...Transaction) {
	s.retains(retained)
	s.Trend.RetainedRate = new(10.0 * mib)
	s.Sample.Transactions = transactions
}

func TestAnOldTransactionIsNamedAndNoFaultOfTheReader(t *testing.T) {
	open := Transaction{PID: 99, User: "batch", Database: "crm", ApplicationName: "report", Began: noon.Add(-time.Hour), QueryStarted: new(noon.Add(-time.Minute)), State: "idle in transaction", Writes: true}
	prepared := Transaction{GID: "it's", User: "batch", Database: "crm", Began: noon.Add(-2 * time.Hour)}
	snapshot := Transaction{PID: 98, Began: noon.Add(-3 * time.Hour)}
	young := Transaction{PID: 97, Began: noon.Add(-time.Minute), Writes: true}
	checkCases(t, []judgeCase{
		{"open", func(s *Subject) { holdBack(s, gib, snapshot, open, young) }, LongTransaction, Info, []string{"PID 99 (report, user batch, database crm)", "open for 1 h, idle in transaction, last query begun 1 min ago", "pg_terminate_backend(99)"}, false},
		{"prepared", func(s *Subject) { holdBack(s, gib, prepared, open) }, PreparedTransaction, Info, []string{"'it''s'", "2 h ago", "in database crm: COMMIT PREPARED 'it''s' or ROLLBACK PREPARED 'it''s'"}, false},
		{"the older one holds it", func(s *Subject) { holdBack(s, gib, prepared, open) }, LongTransaction, OK, nil, false},
		{"unseen", func(s *Subject) { holdBack(s, gib, Transaction{PID: 99, Began: open.Began, Writes: true}) }, LongTransaction, Info, []string{"PID 99 has had"}, false},
		{"young", func(s *Subject) { holdBack(s, gib, young) }, LongTransaction, OK, nil, false},
		{"writes nothing", func(s *Subject) { holdBack(s, gib, snapshot) }, LongTransaction, OK, nil, false},
		{"holds little", func(s *Subject) { holdBack(s, 2*mib, open) }, LongTransaction, OK, nil, false},
		{"reader is behind", func(s *Subject) { holdBack(s, gib, open); s.theSlot().ConfirmedLagBytes = new(int64(gib / 2)) }, LongTransaction, OK, nil, false},
		{"retained WAL names it", func(s *Subject) { holdBack(s, 12*gib, open) }, RetainedWAL, Warning, []string{"PID 99", "pg_terminate_backend(99)"}, false},
	})
	s := healthySubject()
	holdBack(s, gib, open)
	s.Trend.WALRate, s.Trend.RetainedRate, s.Trend.ConfirmedRate = new(1.0*mib), new(1.0*mib), new(1.0*mib)
	report := Judge(DefaultLimits(), *s)
	if report.Verdict != OK || !strings.Contains(report.Culprit, "PID 99") {
		t.Fatalf("%+v", report)
	}
	if report.SecondsToLost == nil { // its WAL grows until it ends
		t.Fatalf("time to lost: %s", report.SecondsToLostWhy)
	}
}

func TestTheStepsOfRestartLSNAreNoGrowth(t *testing.T) {
	s := healthySubject()
	s.Trend.Over = 3 * time.Second
	s.Trend.RetainedRate = s.Trend.WALRate // restart_lsn has not moved in these 3 seconds
	report := Judge(DefaultLimits(), *s)
	if report.Verdict != OK || report.SecondsToLost != nil || report.SecondsToLostWhy != NotGrowing {
		t.Fatalf("%+v", report)
	}
}

func TestNoRetentionLimitIsInformation(t *testing.T) {
	checkCases(t, []judgeCase{
		{"volume known", func(s *Subject) { s.Sample.Server.MaxSlotWALKeepSize = -1 }, NoRetentionLimit, Info, []string{"SELECT pg_reload_conf()", "in place of the server"}, false},
		{"volume unknown", func(s *Subject) {
			s.Sample.Server.MaxSlotWALKeepSize, s.Sample.Server.Volume = -1, Volume{Unknown: "the server is not local"}
		}, NoRetentionLimit, Info, []string{"the server is not local"}, false},
		{"limit", func(*Subject) {}, NoRetentionLimit, OK, nil, false},
	})
}

func TestTimesThatAreNotKnownSayWhy(t *testing.T) {
	for _, c := range []struct {
		name       string
		change     func(s *Subject)
		lost, full string
	}{
		{"one sample", func(s *Subject) { s.Trend = Trend{} }, "the growth of retained WAL needs a second sample", "the growth of retained WAL needs a second sample"},
		{"no limit", func(s *Subject) { s.theSlot().SafeWALSize, s.Sample.Server.MaxSlotWALKeepSize = nil, -1 }, NoLimit, NotGrowing},
		{"unseen size", func(s *Subject) { s.theSlot().SafeWALSize = nil }, "PostgreSQL does not say safe_wal_size", NotGrowing},
		{"volume unknown", func(s *Subject) { s.Sample.Server.Volume = Volume{} }, NotGrowing, "the free space of its volume is not known"},
		{"never reserved", func(s *Subject) {
			slot := s.theSlot()
			slot.RestartLSN, slot.RetainedBytes, slot.WALStatus, slot.SafeWALSize = nil, nil, nil, nil
		}, "the slot holds no WAL: restart_lsn is NULL", "the slot holds no WAL: restart_lsn is NULL"},
		{"missing", func(s *Subject) { s.Sample.Slots = nil }, "the slot does not exist", "the slot does not exist"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthySubject()
			c.change(s)
			r := Judge(DefaultLimits(), *s)
			if r.SecondsToLost != nil || r.SecondsToFull != nil || r.SecondsToLostWhy != c.lost || r.SecondsToFullWhy != c.full {
				t.Fatalf("%+v", r)
			}
		})
	}
}

func TestALostOrUnreservedSlotHasNoTimeLeft(t *testing.T) {
	for status, full := range map[string]string{"lost": "the slot is lost and holds no WAL", "unreserved": NotGrowing} {
		s := healthySubject()
		s.theSlot().WALStatus = &status
		r := Judge(DefaultLimits(), *s)
		if r.SecondsToLost == nil || *r.SecondsToLost != 0 || r.SecondsToFullWhy != full {
			t.Fatalf("%s: %+v", status, r)
		}
	}
}

func TestTheFirstCulpritThatHoldsIsNamed(t *testing.T) {
	s := healthySubject()
	expect := func(part string) {
		t.Helper()
		if culprit := Judge(DefaultLimits(), *s).Culprit; part == "" && culprit != "" || !strings.Contains(culprit, part) {
			t.Fatalf("culprit %q, want %q", culprit, part)
		}
	}
	expect("")
	holdBack(s, gib, Transaction{PID: 99, Began: noon.Add(-time.Hour), Writes: true})
	expect("PID 99")
	s.Trend.LagNotFallingFor = new(time.Minute)
	expect("PID 4711 (cdcpub/a, user cdcpub, from 10.0.0.7) is connected and confirms only")
	s.Publisher = &Publisher{Address: "http://p:9477", Unanswered: "no answer within 2s"}
	expect("the publisher did not answer at http://p:9477 (no answer within 2s); the slot is held by PID 4711 (cdcpub/a, user cdcpub, from 10.0.0.7); its flush_lsn is FF/FFF00000, its last status 12 s old")
	s.theSlot().Active, s.theSlot().Holder, s.Trend.InactiveFor = false, nil, new(time.Minute)
	expect("nobody has been connected to the slot for 1 min or longer; the publisher did not answer")
	s.Publisher = &Publisher{Address: "http://p:9477", State: "streaming", Stall: "topic t: no leader", StallSince: noon}
	expect("the publisher at http://p:9477 publishes nothing: topic t: no leader, since 2026-11-30 12:00:00 UTC")
	s.Publisher.State = "standby"
	expect("nobody has been connected")
	s.theSlot().WALStatus = new("lost")
	expect("the slot is lost: WAL that it needed was removed")
}

func TestFindingsAreWorstFirstAndInformationLast(t *testing.T) {
	s := healthySubject()
	s.dead(3*time.Minute, mib)
	s.retains(51 * gib)
	s.Sample.Server.MaxSlotWALKeepSize, s.theSlot().SafeWALSize = -1, nil
	report := Judge(DefaultLimits(), *s)
	var got []FindingID
	for _, f := range report.Findings {
		got = append(got, f.ID)
	}
	if len(got) != 3 || got[0] != RetainedWAL || got[1] != SlotInactive || got[2] != NoRetentionLimit || report.Verdict != Critical {
		t.Fatalf("%v, verdict %s", got, report.Verdict)
	}
}

func TestANearMissIsForAlertsOnly(t *testing.T) {
	s := healthySubject()
	s.retains(9 * gib)
	report := Judge(DefaultLimits(), *s)
	f := find(&report, RetainedWAL)
	if len(report.Findings) != 0 || report.Verdict != OK || f == nil || f.Severity != OK || f.Hold != Warning || !strings.Contains(f.Summary, "still near the limit of 10 GiB") {
		t.Fatalf("%+v", report)
	}
	s.retains(8 * gib)
	if report := Judge(DefaultLimits(), *s); len(report.ForAlerts()) != 0 {
		t.Fatalf("%+v", report.ForAlerts())
	}
	s.dead(time.Minute, mib)
	s.theSlot().SafeWALSize = new(int64(24 * gib)) // 6 h 49 min
	report = Judge(DefaultLimits(), *s)
	if f := find(&report, TimeToLost); f == nil || f.Severity != OK || f.Hold != Warning {
		t.Fatalf("%+v", report)
	}
}
