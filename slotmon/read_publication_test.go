package slotmon_test

import (
	"slices"
	"testing"

	"github.com/cdcpub/cdcpub/slotmon"
)

func expect(tables ...slotmon.Table) slotmon.Question {
	return slotmon.Question{Expected: &slotmon.Expected{Database: "shop", Publication: `Out"box`, Tables: tables, Columns: []string{"event_id", "payload"}}}
}

// published reads what is said of the publication.
func (c *cluster) published(t *testing.T, q slotmon.Question) *slotmon.Publication {
	t.Helper()
	p := c.read(t, q).Publication
	if p == nil {
		t.Fatal("the sample has no publication")
	}
	return p
}

// want compares all but the fingerprint.
func (c *cluster) want(t *testing.T, q slotmon.Question, missing, filtered, unlogged []string) {
	t.Helper()
	p := c.published(t, q)
	if !p.Exists || !p.Inserts || !slices.Equal(p.Missing, missing) || !slices.Equal(p.Filtered, filtered) || !slices.Equal(p.Unlogged, unlogged) {
		t.Errorf("got %+v, want missing %q, filtered %q, unlogged %q", p, missing, filtered, unlogged)
	}
}

func publication(t *testing.T, c *cluster) {
	outbox := expect(slotmon.Table{Schema: "public", Name: "outbox"})
	t.Run("missing", func(t *testing.T) {
		if p := c.published(t, outbox); p.Exists || p.Name != `Out"box` || p.Fingerprint != "" {
			t.Errorf("got %+v", p)
		}
	})
	exec(t, c.shop, `CREATE PUBLICATION "Out""box" FOR TABLE outbox WITH (publish = 'insert')`)
	t.Run("of another database", func(t *testing.T) {
		s := read(t, connect(t, c.server.URL("postgres")), outbox)
		if s.Publication != nil {
			t.Errorf("got %+v", s.Publication)
		}
	})
	t.Run("fingerprint", func(t *testing.T) { fingerprint(t, c, outbox) })
	t.Run("without inserts", func(t *testing.T) {
		exec(t, c.shop, `ALTER PUBLICATION "Out""box" SET (publish = 'update')`)
		if p := c.published(t, outbox); p.Inserts || p.Missing != nil {
			t.Errorf("got %+v", p)
		}
		exec(t, c.shop, `ALTER PUBLICATION "Out""box" SET (publish = 'insert')`)
		c.want(t, outbox, nil, nil, nil)
	})
	t.Run("without a table", func(t *testing.T) {
		c.want(t, expect(slotmon.Table{Schema: "public", Name: "outbox"}, slotmon.Table{Schema: "public", Name: "orders"}, slotmon.Table{Schema: "no", Name: "where"}),
			[]string{"public.orders", "no.where"}, nil, nil)
	})
	t.Run("of an unlogged table", func(t *testing.T) {
		exec(t, c.shop, `CREATE UNLOGGED TABLE volatile (event_id int)`)
		c.want(t, expect(slotmon.Table{Schema: "public", Name: "volatile"}), []string{"public.volatile"}, nil, []string{"public.volatile"})
	})
	if c.major >= 15 {
		t.Run("with a row filter", func(t *testing.T) {
			exec(t, c.shop, `ALTER PUBLICATION "Out""box" SET TABLE outbox WHERE (event_id > 0)`)
			c.want(t, outbox, nil, []string{"public.outbox"}, nil)
		})
		t.Run("with a column list", func(t *testing.T) {
			exec(t, c.shop, `ALTER PUBLICATION "Out""box" SET TABLE outbox (event_id, payload)`)
			c.want(t, outbox, nil, nil, nil)
			unsure := expect(outbox.Expected.Tables...)
			unsure.Expected.Columns = nil
			c.want(t, unsure, nil, []string{"public.outbox"}, nil)
			exec(t, c.shop, `ALTER PUBLICATION "Out""box" SET TABLE outbox (event_id)`)
			c.want(t, outbox, nil, []string{"public.outbox"}, nil)
		})
		t.Run("of a schema", func(t *testing.T) {
			exec(t, c.shop, `ALTER PUBLICATION "Out""box" SET TABLES IN SCHEMA public`)
			c.want(t, outbox, nil, nil, nil)
			before := c.published(t, outbox).Fingerprint
			exec(t, c.shop, `ALTER PUBLICATION "Out""box" DROP TABLES IN SCHEMA public`, `ALTER PUBLICATION "Out""box" ADD TABLES IN SCHEMA public`)
			if after := c.published(t, outbox).Fingerprint; after == before {
				t.Errorf("the fingerprint stays %q after the schema was dropped and added", after)
			}
		})
	}
	t.Run("of all tables", func(t *testing.T) {
		exec(t, c.shop, `DROP PUBLICATION "Out""box"`, `CREATE PUBLICATION "Out""box" FOR ALL TABLES`)
		c.want(t, outbox, nil, nil, nil)
	})
	exec(t, c.shop, `DROP PUBLICATION "Out""box"`)
}

func fingerprint(t *testing.T, c *cluster, q slotmon.Question) {
	before := c.published(t, q).Fingerprint
	if before == "" {
		t.Fatal("no fingerprint")
	}
	for _, harmless := range []string{
		"VACUUM FREEZE pg_publication", "VACUUM FREEZE pg_publication_rel",
		"VACUUM FULL pg_publication", "VACUUM FULL pg_publication_rel", "VACUUM FULL pg_class",
		"VACUUM FULL FREEZE pg_publication_rel", "REINDEX TABLE pg_publication_rel", "ANALYZE",
		`ALTER PUBLICATION "Out""box" ADD TABLE orders`, `ALTER PUBLICATION "Out""box" DROP TABLE orders`,
		`COMMENT ON PUBLICATION "Out""box" IS 'ours'`, "ALTER TABLE outbox ADD COLUMN more int", "ALTER TABLE outbox DROP COLUMN more",
	} {
		exec(t, c.shop, harmless)
		if after := c.published(t, q).Fingerprint; after != before {
			t.Errorf("%s: the fingerprint changed from %q to %q", harmless, before, after)
		}
	}
	for _, change := range [][]string{
		{`ALTER PUBLICATION "Out""box" DROP TABLE outbox`, `ALTER PUBLICATION "Out""box" ADD TABLE outbox`},
		{`ALTER PUBLICATION "Out""box" SET (publish = 'delete')`, `ALTER PUBLICATION "Out""box" SET (publish = 'insert')`},
		{`DROP PUBLICATION "Out""box"`, `CREATE PUBLICATION "Out""box" FOR TABLE outbox WITH (publish = 'insert')`},
	} {
		exec(t, c.shop, change...)
		after := c.published(t, q).Fingerprint
		if after == before {
			t.Errorf("%q leave the fingerprint at %q", change, after)
		}
		before = after
	}
}

func partitions(t *testing.T, c *cluster) {
	exec(t, c.shop, `CREATE SCHEMA parts`, `CREATE TABLE parts.box (event_id int, payload text) PARTITION BY RANGE (event_id)`,
		`CREATE PUBLICATION "Out""box" FOR TABLE parts.box`)
	box := expect(slotmon.Table{Schema: "parts", Name: "box"})
	c.want(t, box, nil, nil, nil)
	before := c.published(t, box).Fingerprint
	exec(t, c.shop, `CREATE TABLE parts.box1 PARTITION OF parts.box FOR VALUES FROM (0) TO (10)`,
		`CREATE TABLE parts.box2 PARTITION OF parts.box FOR VALUES FROM (10) TO (30) PARTITION BY RANGE (event_id)`,
		`CREATE TABLE parts.box21 PARTITION OF parts.box2 FOR VALUES FROM (10) TO (20)`)
	c.want(t, box, nil, nil, nil)
	if p := c.published(t, box); p.ByPartition != nil {
		t.Errorf("published as such, and partition by partition: %q", p.ByPartition)
	}
	if after := c.published(t, box).Fingerprint; after != before {
		t.Errorf("new partitions changed the fingerprint from %q to %q", before, after)
	}
	t.Run("a partition is covered by its root", func(t *testing.T) {
		c.want(t, expect(slotmon.Table{Schema: "parts", Name: "box21"}), nil, nil, nil)
	})
	t.Run("the partitions cover their root", func(t *testing.T) {
		exec(t, c.shop, `ALTER PUBLICATION "Out""box" SET TABLE parts.box1`)
		c.want(t, box, []string{"parts.box21"}, nil, nil)
		exec(t, c.shop, `ALTER PUBLICATION "Out""box" ADD TABLE parts.box21`)
		c.want(t, box, nil, nil, nil)
		if p := c.published(t, box); !slices.Equal(p.ByPartition, []string{"parts.box"}) {
			t.Errorf("published partition by partition: %q", p.ByPartition)
		}
		exec(t, c.shop, `ALTER PUBLICATION "Out""box" SET TABLE outbox`)
		c.want(t, box, []string{"parts.box"}, nil, nil)
	})
	t.Run("a root without a partition", func(t *testing.T) {
		exec(t, c.shop, `CREATE TABLE parts.empty (event_id int) PARTITION BY RANGE (event_id)`)
		c.want(t, expect(slotmon.Table{Schema: "parts", Name: "empty"}), []string{"parts.empty"}, nil, nil)
	})
	t.Run("an unlogged partition is named", func(t *testing.T) {
		exec(t, c.shop, `ALTER PUBLICATION "Out""box" SET TABLE parts.box`, `CREATE UNLOGGED TABLE parts.box22 PARTITION OF parts.box2 FOR VALUES FROM (20) TO (30)`)
		c.want(t, box, nil, nil, []string{"parts.box22"})
	})
	exec(t, c.shop, `DROP PUBLICATION "Out""box"`, `DROP SCHEMA parts CASCADE`)
}
