package slotmon_test

import (
	"testing"

	"github.com/cdcpub/cdcpub/slotmon"
	"github.com/cdcpub/cdcpub/test/harness"
)

func TestStandbyShowsTheSlotThatIsSynchronised(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 17)
	c.shop.Close(t.Context())
	standby := harness.Standby(t, c.server)
	c.shop = connect(t, c.server.URL("shop"))
	exec(t, c.shop, "SELECT pg_create_logical_replication_slot('moved', 'pgoutput', false, false, true)")
	conn := connect(t, standby.URL("shop"))
	var sample *slotmon.Sample
	c.eventually(t, "the slot is ready on the standby", func() bool {
		exec(t, c.shop, "SELECT pg_log_standby_snapshot()", "SELECT pg_replication_slot_advance('moved', pg_current_wal_lsn())")
		sample = read(t, conn, slotmon.Question{})
		for i := range sample.Slots {
			s := &sample.Slots[i]
			if lag := s.ConfirmedLagBytes; lag != nil && *lag < 0 {
				t.Errorf("on the standby the slot %s is %d bytes ahead of the WAL at %s", s.Name, -*lag, sample.Server.WAL)
			}
		}
		return (&slotmon.Standby{Slot: sample.FindSlot("moved")}).Ready()
	})
	primary := c.read(t, slotmon.Question{})
	if !sample.Server.InRecovery || sample.Server.WAL == 0 || sample.Server.SystemID != primary.Server.SystemID {
		t.Errorf("standby %+v", sample.Server)
	}
	s := sample.FindSlot("moved")
	if s.RetainedBytes == nil || *s.RetainedBytes < 0 || s.Failover == nil || !*s.Failover {
		t.Errorf("slot on the standby %+v", s)
	}
	if s := primary.FindSlot("moved"); primary.Server.InRecovery || s.Failover == nil || !*s.Failover || s.Synced == nil || *s.Synced {
		t.Errorf("slot on the primary %+v", s)
	}
	if s := primary.FindSlot("standby"); s == nil || s.Type != "physical" || s.RetainedBytes == nil || s.Holder == nil || s.XminAge == nil {
		t.Errorf("the standby's own slot %+v", s)
	}
}
