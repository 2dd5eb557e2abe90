package wal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
)

func rows(json ...string) answer {
	a := answer{}
	for _, row := range json {
		a.rows = append(a.rows, []string{row})
	}
	return a
}

func TestSlotsFromWhichRowsCouldBeLostAreRefused(t *testing.T) {
	tests := map[string]struct {
		slot map[string]string
		want Reason
	}{
		"physical":                 {map[string]string{"slot_type": `"physical"`, "plugin": "null", "database": "null"}, SlotUnusable},
		"another plugin":           {map[string]string{"plugin": `"test_decoding"`}, SlotUnusable},
		"another database":         {map[string]string{"database": `"warehouse"`}, SlotUnusable},
		"two-phase":                {map[string]string{"two_phase": "true"}, SlotUnusable},
		"lost":                     {map[string]string{"restart_lsn": "null", "wal_status": `"lost"`}, SlotLost},
		"lost, active elsewhere":   {map[string]string{"wal_status": `"lost"`, "active": "true", "active_pid": "99"}, SlotLost},
		"no restart_lsn":           {map[string]string{"restart_lsn": "null"}, SlotLost},
		"no confirmed_flush_lsn":   {map[string]string{"confirmed_flush_lsn": "null"}, SlotLost},
		"idle for too long":        {map[string]string{"invalidation_reason": `"idle_timeout"`}, SlotLost},
		"confirmed beyond the WAL": {map[string]string{"confirmed_flush_lsn": `"FFFF/0"`}, SlotAhead},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer(t)
				server.setSlot(test.slot)
				refuses(t, server, server.config(), test.want)
			})
		})
	}
	t.Run("missing", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server := newFakeServer(t)
			server.answers["pg_replication_slots s"] = answer{}
			refuses(t, server, server.config(), SlotMissing)
		})
	})
}

// The holder moves the slot while we look: what lay beyond the WAL's end a
// moment ago does not any more.
func TestASlotThatMovedBetweenTwoQueriesIsNotAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t)
		server.setSlot(map[string]string{"confirmed_flush_lsn": `"0/9010"`})
		server.then = map[string]answer{"IDENTIFY_SYSTEM": {rows: [][]string{{"7000000000000000001", "1", "0/9020", "shop"}}}}
		if got := open(t, server, server.config()).Start(); got != 0x9010 {
			t.Errorf("start %s", got)
		}
	})
}

func TestASlotInUseNamesItsHolder(t *testing.T) {
	for name, slot := range map[string]map[string]string{
		"read by another process": {"active": "true", "active_pid": "99"},
		"being created":           {"active": "true", "active_pid": "99", "confirmed_flush_lsn": "null"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer(t)
				server.setSlot(slot)
				server.answers["pg_stat_activity"] = rows(`{"application_name":"cdcpub/b","client_addr":"10.0.0.7"}`)
				_, err := Open(context.Background(), server.config())
				var inUse *SlotInUseError
				if !errors.As(err, &inUse) || inUse.PID != 99 || inUse.ApplicationName != "cdcpub/b" || inUse.Address != "10.0.0.7" || inUse.SystemID != "7000000000000000001" {
					t.Errorf("%v (%T)", err, err)
				}
				server.closed.Wait()
			})
		})
	}
}

func TestASlotTakenAtTheLastMomentIsInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newFakeServer(t)
		server.answers["START_REPLICATION"] = answer{err: refusal("55006")}
		_, err := Open(context.Background(), server.config())
		var inUse *SlotInUseError
		if !errors.As(err, &inUse) || inUse.SystemID == "" || strings.Contains(err.Error(), "pid 0") || strings.Contains(err.Error(), "(0)") {
			t.Errorf("%v (%T)", err, err)
		}
		server.closed.Wait()
	})
}

func TestAFreeSlotIsNotTakenWithoutLeave(t *testing.T) {
	for name, active := range map[string]string{"free": "false", "in use": "true"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer(t)
				server.setSlot(map[string]string{"active": active, "active_pid": "99"})
				server.answers["pg_stat_activity"] = rows(`{"application_name":"cdcpub"}`)
				config, refusal, asked := server.config(), errors.New("after you"), 0
				config.BeforeStart = func() error { asked++; return refusal }
				_, err := Open(context.Background(), config)
				if free := active == "false"; errors.Is(err, refusal) != free || asked > 0 != free {
					t.Errorf("asked %d times: %v", asked, err)
				}
				server.closed.Wait()
				for _, q := range server.queries {
					if strings.HasPrefix(q, "START") {
						t.Errorf("replication began: %s", q)
					}
				}
			})
		})
	}
}

func TestRefusalsAtTheDoorSayWhatToDo(t *testing.T) {
	for code, want := range map[string]Reason{"28P01": AccessDenied, "28000": AccessDenied, "42501": AccessDenied, "3D000": AccessDenied} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer(t)
				server.dialed = 1
				server.look = func() lookResult { return lookResult{refused: fatal(code)} }
				refuses(t, server, server.config(), want)
			})
		})
	}
	for _, code := range []string{"57P03", "53300"} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer(t)
				server.dialed = 1
				server.look = func() lookResult { return lookResult{refused: fatal(code)} }
				_, err := Open(context.Background(), server.config())
				wantCode(code)(t, err)
				server.closed.Wait()
			})
		})
	}
}

// outbox is the answer about a table with the given tree of partitions.
func outbox(persistence string, leaves ...int) answer {
	tree, described := []string{"1"}, []string{}
	for _, leaf := range leaves {
		if leaf != 1 {
			tree = append(tree, fmt.Sprint(leaf))
		}
		described = append(described, fmt.Sprintf(`{"name":"app.leaf%d","persistence":%q,"ancestors":[%d,1,77]}`, leaf, persistence, leaf))
	}
	return rows(fmt.Sprintf(`{"schema":"app","name":"outbox","oid":1,"tree":[%s],"leaves":[%s],"columns":["id","payload","note"]}`,
		strings.Join(tree, ","), strings.Join(described, ",")))
}

func published(name string, oid int, attnames, filter string) string {
	return fmt.Sprintf(`{"schemaname":"app","tablename":%q,"oid":%d,"attnames":%s,"rowfilter":%s}`, name, oid, attnames, filter)
}

func TestPublicationsThatLeaveRowsOutAreRefused(t *testing.T) {
	const all = `["id","payload","note"]`
	tables := func(json ...string) map[string]answer {
		return map[string]answer{"pg_publication_tables": rows(json...)}
	}
	tests := map[string]struct {
		answers map[string]answer
		want    Reason // 0: accepted
	}{
		"missing":               {map[string]answer{"pg_publication p WHERE pubname": {}}, PublicationMissing},
		"without inserts":       {map[string]answer{"pg_publication p WHERE pubname": rows(`{"row":{"pubinsert":false},"oid":"500","xmin":"700"}`)}, PublicationUnusable},
		"without tables":        {tables(), PublicationUnusable},
		"with other tables":     {tables(published("orders", 8, all, "null")), PublicationUnusable},
		"with a row filter":     {tables(published("outbox", 1, all, `"(id > 0)"`)), PublicationUnusable},
		"without a column":      {tables(published("outbox", 1, `["id"]`, "null")), PublicationUnusable},
		"table missing":         {map[string]answer{"pg_partition_tree": {}}, TableUnusable},
		"a view in its place":   {map[string]answer{"pg_partition_tree": {}, "CASE c.relkind": rows(`"view"`)}, TableUnusable},
		"table unlogged":        {map[string]answer{"pg_partition_tree": outbox("u", 1)}, TableUnusable},
		"column missing":        {map[string]answer{"pg_partition_tree": rows(`{"schema":"app","name":"outbox","oid":1,"tree":[1],"leaves":[{"name":"x","persistence":"p","ancestors":[1]}],"columns":["id"]}`)}, TableUnusable},
		"names without lists":   {tables(`{"schemaname":"app","tablename":"outbox","oid":1}`), 0},
		"not configured column": {tables(published("outbox", 1, `["id","payload"]`, "null")), 0},
		"all leaves": {map[string]answer{"pg_partition_tree": outbox("p", 11, 12),
			"pg_publication_tables": rows(published("p11", 11, all, "null"), published("p12", 12, all, "null"))}, 0},
		"via the root": {map[string]answer{"pg_partition_tree": outbox("p", 11, 12),
			"pg_publication_tables": rows(published("outbox", 1, all, "null"))}, 0},
		"one leaf of two": {map[string]answer{"pg_partition_tree": outbox("p", 11, 12),
			"pg_publication_tables": rows(published("p11", 11, all, "null"))}, PublicationUnusable},
		"a leaf with a filter": {map[string]answer{"pg_partition_tree": outbox("p", 11, 12),
			"pg_publication_tables": rows(published("p11", 11, all, "null"), published("p12", 12, all, `"(false)"`))}, PublicationUnusable},
		"an unlogged leaf": {map[string]answer{"pg_partition_tree": outbox("u", 11),
			"pg_publication_tables": rows(published("outbox", 1, all, "null"))}, TableUnusable},
		"no leaf, not named": {map[string]answer{"pg_partition_tree": outbox("p"), "pg_publication_tables": {}}, TableUnusable},
		"via a table above ours": {map[string]answer{"pg_partition_tree": outbox("p", 11),
			"pg_publication_tables": rows(published("above", 77, all, "null"))}, PublicationUnusable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newFakeServer(t)
				for part, a := range test.answers {
					server.answers[part] = a
				}
				if test.want == 0 {
					open(t, server, server.config())
					return
				}
				refuses(t, server, server.config(), test.want)
			})
		})
	}
}

func TestRelationsAreKnownByOidAndByName(t *testing.T) {
	k := &known{outbox: map[uint32]bool{1: true, 2: true}, foreign: map[uint32]bool{8: true}, names: map[Table]bool{{"app", "outbox"}: true}}
	tests := map[string]struct {
		relation Relation
		want     Class
	}{
		"the table":                 {Relation{ID: 1, Schema: "app", Name: "outbox"}, Outbox},
		"a partition":               {Relation{ID: 2, Schema: "parts", Name: "outbox_2026"}, Outbox},
		"renamed since":             {Relation{ID: 1, Schema: "app", Name: "outbox_old"}, Outbox},
		"dropped and created again": {Relation{ID: 9, Schema: "app", Name: "outbox"}, Outbox},
		"another table":             {Relation{ID: 8, Schema: "app", Name: "orders"}, Foreign},
		"a table nobody knows":      {Relation{ID: 10, Schema: "app", Name: "outbox_2027"}, Unknown},
		"the same name elsewhere":   {Relation{ID: 10, Schema: "audit", Name: "outbox"}, Unknown},
	}
	for name, test := range tests {
		if got := k.Classify(&test.relation); got != test.want {
			t.Errorf("%s: class %d, want %d", name, got, test.want)
		}
	}
}
