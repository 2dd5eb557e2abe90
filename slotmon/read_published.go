package slotmon

import (
	"slices"
	"strings"
)

// compare judges the tables as PostgreSQL's output plugin does: a row is
// published if its table, or a table that this is a partition of, is in the
// publication by itself, by its schema or as one of all.
func (p *published) compare(expected *Expected) *Publication {
	result := &Publication{Name: expected.Publication, Tables: len(expected.Tables)}
	if p.Publication == nil {
		return result
	}
	result.Exists, result.Inserts = true, p.Publication.Inserts
	for _, table := range expected.Tables {
		tree := p.tree(table)
		result.Missing = append(result.Missing, p.missing(table, tree)...)
		if p.filtered(tree, expected.Columns) {
			result.Filtered = append(result.Filtered, table.String())
		}
		if p.byPartition(tree) {
			result.ByPartition = append(result.ByPartition, table.String())
		}
		for _, r := range tree {
			if !r.Partitioned && r.Persistence != "p" {
				result.Unlogged = append(result.Unlogged, r.table().String())
			}
		}
	}
	result.Fingerprint = p.fingerprint(expected)
	return result
}

// tree is the table and all its partitions; empty if it does not exist.
func (p *published) tree(table Table) []relation {
	root := slices.IndexFunc(p.Relations, func(r relation) bool { return r.Root == r.OID && r.table() == table })
	if root < 0 {
		return nil
	}
	var tree []relation
	for _, r := range p.Relations {
		if r.Root == p.Relations[root].OID {
			tree = append(tree, r)
		}
	}
	return tree
}

func (r *relation) table() Table { return Table{r.Schema, r.Name} }

// missing names the table if none of its rows are published, and else the
// partitions whose rows are not.
func (p *published) missing(table Table, tree []relation) []string {
	var names []string
	holders := 0
	for _, r := range tree {
		if r.Partitioned {
			continue
		}
		holders++
		if !p.covers(&r) {
			names = append(names, r.table().String())
		}
	}
	switch {
	case len(tree) == 0, holders > 0 && len(names) == holders:
		return []string{table.String()}
	case holders == 0 && !slices.ContainsFunc(tree, func(r relation) bool { return p.covers(&r) }):
		return []string{table.String()} // no partition yet, and it would not be published
	}
	return names
}

// byPartition tells if a partitioned table, which is the first of the tree's
// ancestors, is not published while some of its partitions are.
func (p *published) byPartition(tree []relation) bool {
	root := slices.IndexFunc(tree, func(r relation) bool { return r.Root == r.OID })
	return root >= 0 && tree[root].Partitioned && !p.covers(&tree[root]) &&
		slices.ContainsFunc(tree, func(r relation) bool { return !r.Partitioned && p.covers(&r) })
}

func (p *published) covers(r *relation) bool {
	named, excepted := false, false
	for _, m := range p.Members {
		if slices.ContainsFunc(r.Line, func(s step) bool { return s.OID == m.Relation }) {
			named, excepted = named || !m.Except, excepted || m.Except
		}
	}
	return named || p.Publication.All && !excepted || slices.ContainsFunc(p.Schemas, func(row schemaRow) bool {
		return slices.ContainsFunc(r.Line, func(s step) bool { return s.Schema == row.Schema })
	})
}

// filtered tells if a row or a column that is needed could be left out. Which
// of several filters holds depends on publish_via_partition_root; any is one
// too many.
func (p *published) filtered(tree []relation, columns []string) bool {
	for _, m := range p.Members {
		concerns := slices.ContainsFunc(tree, func(r relation) bool {
			return slices.ContainsFunc(r.Line, func(s step) bool { return s.OID == m.Relation })
		})
		if concerns && (m.Filter || m.Columns != nil && !containsAll(m.Columns, columns)) {
			return true
		}
	}
	return false
}

// containsAll tells if the column list has all that are needed. If it is not
// known which those are, no list has.
func containsAll(list, needed []string) bool {
	if len(needed) == 0 {
		return false
	}
	for _, column := range needed {
		if !slices.Contains(list, column) {
			return false
		}
	}
	return true
}

// fingerprint is made of the catalog rows that decide whether rows of the
// tables are published. A dropped table that is added again leaves no other
// trace than a new row. Rows for partitions are left out, since a new partition
// is no gap.
//
// It does not change by itself: oid is the row's for life, and freezing a row
// (VACUUM, VACUUM FULL too) leaves the xmin that a query sees.
func (p *published) fingerprint(expected *Expected) string {
	parts := []string{p.Publication.OID + ":" + p.Publication.XMin}
	var line []step
	for _, table := range expected.Tables {
		for _, r := range p.tree(table) {
			if r.Root == r.OID {
				line = append(line, r.Line...)
			}
		}
	}
	for _, m := range p.Members {
		if slices.ContainsFunc(line, func(s step) bool { return s.OID == m.Relation }) {
			parts = append(parts, "table "+m.OID+":"+m.XMin)
		}
	}
	for _, row := range p.Schemas {
		if slices.ContainsFunc(line, func(s step) bool { return s.Schema == row.Schema }) {
			parts = append(parts, "schema "+row.OID+":"+row.XMin)
		}
	}
	return strings.Join(parts, " ")
}
