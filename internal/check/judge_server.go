package check

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cdcpub/cdcpub/internal/human"
	"github.com/cdcpub/cdcpub/slotmon"
)

type slotRow = slotmon.Slot

// SQLSTATE codes (PostgreSQL documentation, appendix A).
const (
	invalidPassword      = "28P01"
	invalidAuthorization = "28000" // no pg_hba.conf line, no such role
	noSuchDatabase       = "3D000"
	noPrivilege          = "42501"
	tooManyConnections   = "53300"
	protocolViolation    = "08P01"
	cannotConnectNow     = "57P03"
)

func (j *judge) reachable() {
	pg := &j.Postgres
	refused := pg.Unreachable
	if refused == nil {
		j.add(idReachable, ok("connected to %s as %s", pg.Server, pg.User))
		return
	}
	o := fail("PostgreSQL at %s cannot be used as user %s: %s", pg.Server, pg.User, refused.Text)
	switch refused.SQLState {
	case invalidPassword:
		o = o.cured("give the right password in PGPASSWORD, the passfile or postgres.password_file")
	case invalidAuthorization:
		o = o.cured("create the role, or let it in: this line in pg_hba.conf with the address of this machine, then SELECT pg_reload_conf()", j.hbaLine())
	case noSuchDatabase:
		o = o.cured("correct the database in postgres.url")
	case noPrivilege:
		o = o.cured("as the owner of the database or a superuser", fmt.Sprintf("GRANT CONNECT ON DATABASE %s TO %s;", ident(pg.Database), ident(pg.User)))
	case tooManyConnections:
		o = o.cured("end connections that nobody needs, or raise max_connections and restart PostgreSQL")
	case cannotConnectNow:
		o = o.cured("wait until PostgreSQL has started, then run check again")
	default:
		o = o.cured("check host, port and sslmode in postgres.url, that PostgreSQL listens there (listen_addresses), and what is between: firewall, container network, VPN")
	}
	j.add(idReachable, o)
}

// hbaLine lets the role in for SQL and for logical replication alike: the
// keyword replication means physical replication only.
func (j *judge) hbaLine() string {
	return fmt.Sprintf("hostssl  %s  %s  ADDRESS/32  scram-sha-256", ident(j.Postgres.Database), ident(j.Postgres.User))
}

func (j *judge) replication() {
	r := &j.Postgres.Replication
	about := j.Postgres.About
	switch {
	case r.Refused == nil:
		j.add(idReplication, ok("a replication connection is accepted; system identifier %s, timeline %d", r.SystemID, r.Timeline))
	case j.Postgres.Unreachable != nil && j.Postgres.Unreachable.SQLState == r.Refused.SQLState:
		j.add(idReplication, skip("depends on %s", idReachable))
	case r.Refused.SQLState == noPrivilege && about != nil && !about.mayReplicate():
		j.add(idReplication, skip("depends on %s: the server answers %q", idRole, r.Refused.Text))
	default:
		j.add(idReplication, j.refusedReplication(r.Refused))
	}
}

func (j *judge) refusedReplication(refused *Failure) outcome {
	o := fail("a replication connection is refused: %s", refused.Text)
	switch refused.SQLState {
	case noPrivilege:
		return o.cured("as a superuser", j.grantReplication()...)
	case invalidAuthorization:
		return o.cured("pg_hba.conf needs a line for the database itself, since the keyword replication means physical replication only; then SELECT pg_reload_conf()", j.hbaLine())
	case tooManyConnections:
		return o.cured("raise max_wal_senders and restart PostgreSQL", "ALTER SYSTEM SET max_wal_senders = 20;")
	case protocolViolation:
		return o.cured("this looks like a connection pooler: state the address of PostgreSQL itself in postgres.url")
	}
	return o.cured("if a pooler or proxy is between, state the address of PostgreSQL itself in postgres.url")
}

func (a *About) mayReplicate() bool {
	return a.Superuser || a.Replication || slices.Contains(a.MemberOf, "rds_replication")
}

// grantReplication has the statement of the service that the server seems to
// be of: PostgreSQL has no function that tells.
func (j *judge) grantReplication() []string {
	role := ident(j.Postgres.User)
	if about := j.Postgres.About; about != nil && slices.Contains(about.CloudRoles, "rds_replication") {
		return []string{fmt.Sprintf("GRANT rds_replication TO %s;", role)}
	}
	return []string{fmt.Sprintf("ALTER ROLE %s REPLICATION;", role)}
}

// server judges what needs no more than a connection.
func (j *judge) server() {
	pg := &j.Postgres
	if pg.Unreachable != nil {
		j.skip(serverIDs, "depends on %s", idReachable)
		return
	}
	if pg.Sample == nil {
		j.skip([]string{idVersion, idPrimary, idSlots, idWALLimit, idIdle}, "could not be read: %s", pg.SampleUnread)
	} else {
		j.add(idVersion, version(&pg.Sample.Server))
		j.add(idPrimary, j.primary())
		j.add(idSlots, j.freeSlots())
		j.add(idWALLimit, j.walLimit())
		j.add(idIdle, idleTimeout(&pg.Sample.Server))
	}
	if pg.About == nil {
		j.skip([]string{idWALLevel, idSenders, idRole, idMonitor, idDirect, idClock}, "could not be read: %s", pg.AboutUnread)
	} else {
		j.add(idWALLevel, j.walLevel())
		j.add(idSenders, j.freeSenders())
		j.add(idRole, j.role())
		j.add(idMonitor, j.monitor())
		j.add(idDirect, pg.About.direct())
		j.add(idClock, pg.About.clock())
	}
	j.add(idSession, j.session())
}

func (j *judge) primary() outcome {
	server := &j.Postgres.Sample.Server
	switch {
	case !server.InRecovery:
		return ok("is a primary")
	case server.VersionNum < 160000:
		return fail("is a standby, and PostgreSQL %s cannot decode on a standby (16 can)", server.Version).
			cured("name the primary in postgres.url; with several hosts add target_session_attrs=read-write")
	}
	return warn("is a standby: it decodes, but slots there are lost when it conflicts with the primary, and a new slot waits for the primary").
		cured("if that is not meant, name the primary in postgres.url; with several hosts add target_session_attrs=read-write")
}

func (j *judge) walLevel() outcome {
	if level := j.Postgres.About.WALLevel; level != "logical" {
		o := fail("wal_level is %s, so that the WAL has no rows to decode", level)
		if len(j.Postgres.About.CloudRoles) > 0 {
			return o.cured("set the flag of the service and restart: rds.logical_replication = 1 (RDS, Aurora), cloudsql.logical_decoding = on (Cloud SQL), wal_level = LOGICAL (Azure)")
		}
		return o.cured("then restart PostgreSQL; reloading is not enough", "ALTER SYSTEM SET wal_level = 'logical';")
	}
	return ok("logical")
}

func (j *judge) freeSlots() outcome {
	server := &j.Postgres.Sample.Server
	used := len(j.Postgres.Sample.Slots)
	if j.slot == nil && used >= server.MaxSlots {
		return fail("all %d of max_replication_slots are in use, and slot %s has to be created", server.MaxSlots, j.Setup.Slot).
			cured("drop a slot that nobody needs (`"+j.Setup.command("slot", "list")+"` shows them), or raise the limit and restart PostgreSQL",
				fmt.Sprintf("ALTER SYSTEM SET max_replication_slots = %d;", server.MaxSlots+10))
	}
	return ok("%d of %d replication slots in use", used, server.MaxSlots)
}

func (j *judge) freeSenders() outcome {
	used := j.Postgres.About.Senders
	if j.Postgres.Sample == nil {
		return skip("%d walsenders are in use; max_wal_senders could not be read", used)
	}
	limit := j.Postgres.Sample.Server.MaxWALSenders
	if used >= limit && (j.slot == nil || !j.slot.Active) {
		return fail("all %d of max_wal_senders are in use, and the publisher needs one", limit).
			cured("end replication that nobody needs (pg_stat_replication shows it), or raise the limit and restart PostgreSQL",
				fmt.Sprintf("ALTER SYSTEM SET max_wal_senders = %d;", limit+10))
	}
	return ok("%d of %d walsenders in use", used, limit)
}

// minConnections is what two processes on one slot open at the same time: one of
// them the stream, each its monitor and a look at the slot, without which a
// session does not begin to publish; and room for one that is being replaced.
const minConnections = 8

func (j *judge) role() outcome {
	about := j.Postgres.About
	accepted := j.Postgres.Replication.Refused == nil
	switch limit := about.ConnectionLimit; {
	case about.mayReplicate() && !about.Superuser && limit != nil && *limit < minConnections:
		return warn("%s may have %d connections at a time: a publisher and its standby need up to %d, and publish nothing while they cannot look who holds the slot", about.Role, *limit, minConnections).
			cured("as a superuser", fmt.Sprintf("ALTER ROLE %s CONNECTION LIMIT %d;", ident(about.Role), minConnections))
	case about.Superuser:
		return ok("%s is a superuser; REPLICATION alone would do", about.Role)
	case about.Replication:
		return ok("%s has REPLICATION", about.Role)
	case about.mayReplicate():
		return ok("%s is a member of rds_replication", about.Role)
	case accepted:
		return ok("%s may replicate, though not by REPLICATION itself (roles of the service: %s)", about.Role, list(about.MemberOf))
	}
	return fail("role %s lacks REPLICATION, so that it cannot read a slot", about.Role).cured("as a superuser, or the administrator of the service", j.grantReplication()...)
}

func (j *judge) monitor() outcome {
	if j.Postgres.About.Monitor {
		return ok("%s sees statistics of other roles (pg_monitor)", j.Postgres.About.Role)
	}
	return warn("role %s lacks pg_monitor: publishing works, but alerts cannot name who holds a slot or its WAL, nor the size of pg_wal", j.Postgres.About.Role).
		cured("as a superuser", fmt.Sprintf("GRANT pg_monitor TO %s;", ident(j.Postgres.About.Role)))
}

func (a *About) direct() outcome {
	if a.Pooled {
		return warn("a pooler or proxy answers instead of PostgreSQL (its process id is not that of the server process): it may hide that the server is gone").
			cured("state the address of PostgreSQL itself in postgres.url")
	}
	return ok("PostgreSQL itself answers, no pooler")
}

// maxClockOffset is how far clocks may be apart before it is said.
const maxClockOffset = time.Second

func (a *About) clock() outcome {
	apart, sure := a.ClockOffset.Abs(), a.ClockOffset.Abs()-a.ClockError
	if sure <= maxClockOffset {
		return ok("differs from that of this machine by %s at most", max(apart+a.ClockError, time.Millisecond).Round(time.Millisecond))
	}
	which := "behind"
	if a.ClockOffset > 0 {
		which = "ahead of"
	}
	return warn("the server's clock is %s %s that of this machine: latencies are measured wrong, and records carry the server's time (Kafka may refuse what lies in its future)", apart.Round(100*time.Millisecond), which).
		cured("let NTP or chrony set both clocks")
}

func (j *judge) walLimit() outcome {
	server := &j.Postgres.Sample.Server
	if server.MaxSlotWALKeepSize >= 0 {
		return ok("max_slot_wal_keep_size is %s: a slot that is not read loses its WAL beyond that, and the disk is safe", human.Bytes(server.MaxSlotWALKeepSize))
	}
	return warn("max_slot_wal_keep_size is -1: while nothing is confirmed, WAL grows until the server's disk is full and PostgreSQL stops").
		cured("limit it to what the disk can spare: the longest outage to be survived times the rate of WAL; for example",
			"ALTER SYSTEM SET max_slot_wal_keep_size = '50GB';", "SELECT pg_reload_conf();")
}

func idleTimeout(server *slotmon.Server) outcome {
	switch {
	case server.IdleSlotTimeout > 0:
		return warn("idle_replication_slot_timeout is %s: a publisher that is away for longer loses its slot, and the rows of that time", human.Seconds(server.IdleSlotTimeout.Seconds())).
			cured("turn it off, or make sure that the publisher is never away for so long", "ALTER SYSTEM SET idle_replication_slot_timeout = 0;", "SELECT pg_reload_conf();")
	case server.VersionNum < 180000:
		return ok("PostgreSQL %s has none", server.Version)
	}
	return ok("off")
}

// SessionSettings are the start-up parameters that fix how PostgreSQL prints a
// value, as the publisher sets them: name, what is asked for, and how
// pg_settings then shows it.
func SessionSettings() [][3]string {
	return [][3]string{
		{"datestyle", "ISO, YMD", "ISO, YMD"}, {"timezone", "UTC", "UTC"}, {"intervalstyle", "postgres", "postgres"},
		{"extra_float_digits", "3", "3"}, {"bytea_output", "hex", "hex"}, {"client_encoding", "UTF8", "UTF8"},
	}
}

// session: roles and databases may override settings, but not those that a
// client asks for at the start; only something in between can.
func (j *judge) session() outcome {
	if j.Postgres.Replication.Refused != nil {
		return skip("depends on %s", idReplication)
	}
	var wrong []string
	for _, s := range SessionSettings() {
		if got := j.Postgres.Replication.Session[s[0]]; got != s[2] {
			wrong = append(wrong, fmt.Sprintf("%s is %q instead of %q", s[0], got, s[2]))
		}
	}
	if len(wrong) > 0 {
		return fail("the server does not use the settings that the publisher asks for, so that rows would have other bytes: %s", strings.Join(wrong, ", ")).
			cured("a pooler or a login trigger changes them: state the address of PostgreSQL itself in postgres.url, or exempt the role from the trigger")
	}
	if about := j.Postgres.About; about != nil && about.ServerEncoding == "SQL_ASCII" {
		return warn("the database has the encoding SQL_ASCII, in which PostgreSQL stores any bytes: a row with text that is not UTF-8 cannot be published and stops the stream").
			cured("move the database to UTF8, or make sure that applications write UTF-8")
	}
	return ok("DateStyle, TimeZone, client_encoding and three more are as the publisher sets them")
}
