package check

import (
	"fmt"
	"slices"
	"strings"
)

func (j *judge) publication() {
	pg := &j.Postgres
	if pg.Unreachable != nil {
		j.skip(publicationIDs, "depends on %s", idReachable)
		return
	}
	if pg.Sample == nil || pg.Sample.Publication == nil {
		j.skip(publicationIDs, "could not be read: %s", pg.SampleUnread)
		return
	}
	name := j.Setup.Publication
	if !pg.Sample.Publication.Exists {
		j.add(idPublication, fail("publication %s does not exist in database %s", name, pg.Database).
			cured("as the tables' owner, by `"+j.initAsOwner()+"` or as below; then make a slot that exists anew: README, \"A slot older than its publication\"", j.createPublication()))
		j.skip(publicationIDs[1:], "depends on %s", idPublication)
		return
	}
	j.add(idPublication, ok("publication %s exists", name))
	if pg.Sample.Publication.Inserts {
		j.add(idInserts, ok("publishes inserts"))
	} else {
		j.add(idInserts, fail("publication %s does not publish inserts: every outbox row is left out in silence", name).
			cured("as the owner of the publication; rows written before are not published", fmt.Sprintf("ALTER PUBLICATION %s SET (publish = 'insert');", ident(name))))
	}
	j.published()
	j.filters()
	j.add(idViaRoot, j.viaRoot())
}

func (j *judge) createPublication() string {
	var tables []string
	for _, t := range j.Setup.Tables {
		tables = append(tables, ident(t.Schema, t.Name))
	}
	return fmt.Sprintf("CREATE PUBLICATION %s FOR TABLE %s WITH (publish = 'insert', publish_via_partition_root = true);", ident(j.Setup.Publication), strings.Join(tables, ", "))
}

// published: what slotmon calls missing is a table, or those partitions of it
// that are not published.
func (j *judge) published() {
	publication := j.Postgres.Sample.Publication
	partitions := slices.Clone(publication.Missing)
	for i := range j.Postgres.Tables {
		name := j.Postgres.Tables[i].Name.String()
		partitions = slices.DeleteFunc(partitions, func(missing string) bool { return missing == name })
	}
	for i := range j.Postgres.Tables {
		t := &j.Postgres.Tables[i]
		name := t.Name.String()
		switch {
		case !t.Exists && t.Unread == "":
			j.addFor(idPublished, name, skip("depends on %s", idTable))
		case slices.Contains(publication.Missing, name):
			cure := "as the owner of the publication; rows written before are not published"
			if len(t.Unlogged) > 0 {
				cure = "first see " + idUnlogged + ", since PostgreSQL publishes no UNLOGGED table; then, as the owner of the publication"
			}
			j.addFor(idPublished, name, fail("publication %s does not contain it: its rows are left out in silence", j.Setup.Publication).
				cured(cure, fmt.Sprintf("ALTER PUBLICATION %s ADD TABLE %s;", ident(j.Setup.Publication), ident(t.Name.Schema, t.Name.Name))))
		case len(partitions) == 0 && slices.Contains(publication.ByPartition, name):
			j.addFor(idPublished, name, warn("publication %s lists its partitions and not the table itself: rows of a partition that is attached later are left out in silence until it is added too; a running cdcpub notices that within slot_monitor.interval, and stops", j.Setup.Publication).
				cured("as the owner of the publication, while cdcpub is stopped: list the table itself, which brings later partitions along; then take the partitions out of the list", j.listRoot(t)...))
		default:
			j.addFor(idPublished, name, ok("is published by %s", j.Setup.Publication))
		}
	}
	if len(partitions) > 0 {
		j.add(idPublished, fail("publication %s lacks partitions of an outbox table, whose rows are left out in silence: %s", j.Setup.Publication, list(partitions)).
			cured("as the owner of the publication: add the partitioned table itself, then all its partitions are published, later ones too; rows written before are not published", j.listRoots()...))
	}
}

// listRoot makes a publication list a partitioned table in place of its
// partitions. In one transaction, so that no row falls between.
func (j *judge) listRoot(t *Table) []string {
	publication := ident(j.Setup.Publication)
	statement := fmt.Sprintf("BEGIN; ALTER PUBLICATION %s ADD TABLE %s; ", publication, ident(t.Name.Schema, t.Name.Name))
	var partitions []string
	if content := j.Postgres.Content; content != nil {
		for _, m := range content.Members {
			if slices.Contains(t.Line, m.OID) {
				partitions = append(partitions, m.Name)
			}
		}
	}
	if len(partitions) > 0 {
		statement += fmt.Sprintf("ALTER PUBLICATION %s DROP TABLE %s; ", publication, strings.Join(partitions, ", "))
	}
	return []string{statement + fmt.Sprintf("ALTER PUBLICATION %s SET (publish_via_partition_root = true); COMMIT;", publication)}
}

// listRoots has a statement for each partitioned table of which partitions are
// listed.
func (j *judge) listRoots() []string {
	var statements []string
	for i := range j.Postgres.Tables {
		if t := &j.Postgres.Tables[i]; slices.Contains(j.Postgres.Sample.Publication.ByPartition, t.Name.String()) {
			statements = append(statements, j.listRoot(t)...)
		}
	}
	return statements
}

// filters names the tables of which rows or needed columns are left out. A
// column list that has all that is needed leaves out nothing that matters.
func (j *judge) filters() {
	content := j.Postgres.Content
	if content == nil {
		j.add(idFilters, skip("could not be read: %s", j.Postgres.ContentUnread))
		return
	}
	required := j.Setup.Route.RequiredColumns()
	whole := true
	for _, m := range content.Members {
		var why []string
		if m.Filter != "" {
			why = append(why, "only its rows with "+m.Filter)
		}
		if lacks := without(required, m.Columns); m.Columns != nil && len(lacks) > 0 {
			why = append(why, "not its columns "+strings.Join(lacks, ", "))
		}
		if len(why) == 0 {
			continue
		}
		whole = false
		j.addFor(idFilters, m.Name, fail("publication %s publishes %s", j.Setup.Publication, strings.Join(why, ", and ")).
			cured("publish the table whole, in one transaction so that no row falls between; rows left out before are not published",
				fmt.Sprintf("BEGIN; ALTER PUBLICATION %[1]s DROP TABLE %[2]s; ALTER PUBLICATION %[1]s ADD TABLE %[2]s; COMMIT;", ident(j.Setup.Publication), m.Name)))
	}
	if whole {
		j.add(idFilters, ok("no row filter, and no column list that leaves out what is needed"))
	}
}

// without is what of wanted is not in have.
func without(wanted, have []string) []string {
	var lacks []string
	for _, name := range wanted {
		if !slices.Contains(have, name) {
			lacks = append(lacks, name)
		}
	}
	return lacks
}

func (j *judge) viaRoot() outcome {
	content := j.Postgres.Content
	if content == nil {
		return skip("could not be read: %s", j.Postgres.ContentUnread)
	}
	var partitioned []string
	for i := range j.Postgres.Tables {
		if t := &j.Postgres.Tables[i]; t.Partitioned {
			partitioned = append(partitioned, t.Name.String())
		}
	}
	switch {
	case len(partitioned) == 0:
		return ok("no outbox table is partitioned")
	case content.ViaRoot:
		return ok("partitions of %s arrive under its name", list(partitioned))
	}
	return warn("%s is partitioned and publish_via_partition_root is off: rows arrive under the names of their partitions, and each partition attached while cdcpub runs makes it reconnect", list(partitioned)).
		cured("as the owner of the publication, while cdcpub is stopped", fmt.Sprintf("ALTER PUBLICATION %s SET (publish_via_partition_root = true);", ident(j.Setup.Publication)))
}
