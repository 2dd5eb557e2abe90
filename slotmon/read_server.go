package slotmon

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// rights is who asks, whom, and what it may see.
type rights struct {
	Role         string    `json:"role"`
	Database     string    `json:"database"`
	Version      string    `json:"version"`
	VersionNum   int       `json:"version_num"`
	Started      time.Time `json:"started"`
	Statistics   bool      `json:"statistics"`
	Settings     bool      `json:"settings"`
	WALDirectory bool      `json:"wal_directory"`
	Control      bool      `json:"control"`
}

const rightsSQL = `SELECT row_to_json(x) FROM (SELECT
	current_user AS role,
	current_database() AS database,
	current_setting('server_version') AS version,
	current_setting('server_version_num')::int AS version_num,
	pg_postmaster_start_time() AS started,
	pg_has_role('pg_read_all_stats', 'USAGE') AS statistics,
	pg_has_role('pg_read_all_settings', 'USAGE') AS settings,
	has_function_privilege('pg_catalog.pg_ls_waldir()', 'EXECUTE') AS wal_directory,
	has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE') AS control) x`

// walEnd is where WAL ends. LSN is nil on a standby that has none yet.
type walEnd struct {
	InRecovery bool `json:"in_recovery"`
	LSN        *LSN `json:"lsn"`
	// AtLeast: the standby may have more WAL than it can tell of. Until it has
	// replayed again what it had before a crash it has no walreceiver, and its
	// slots may well stand beyond what is replayed.
	AtLeast bool      `json:"at_least"`
	Now     time.Time `json:"now"`
}

// walEndSQL: on a standby receive is NULL without a walreceiver, and falls
// behind replay when WAL comes from an archive; greatest ignores NULL.
const walEndSQL = `SELECT row_to_json(x) FROM (SELECT
	pg_is_in_recovery() AS in_recovery,
	CASE WHEN pg_is_in_recovery() THEN greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn())
		ELSE pg_current_wal_lsn() END AS lsn,
	pg_is_in_recovery() AND pg_last_wal_receive_lsn() IS NULL AS at_least,
	clock_timestamp() AS now) x`

func (a *answers) server(more *extras) Server {
	version, _, _ := strings.Cut(a.rights.Version, " ")
	s := Server{
		SystemID:           more.SystemID,
		Version:            version,
		VersionNum:         a.rights.VersionNum,
		Database:           a.rights.Database,
		InRecovery:         a.end.InRecovery,
		Now:                a.end.Now,
		Started:            a.rights.Started,
		MaxSlotWALKeepSize: a.settings.maxSlotWALKeepSize,
		IdleSlotTimeout:    a.settings.idleSlotTimeout,
		MaxSlots:           int(a.settings.maxSlots),
		MaxWALSenders:      int(a.settings.maxWALSenders),
		AutovacuumFreeze:   a.settings.autovacuumFreeze,
		SyncedStandbys:     a.settings.syncedStandbys,
		WALDirectoryBytes:  more.WALDirectoryBytes,
	}
	if a.end.LSN != nil {
		s.WAL = *a.end.LSN
	}
	return s
}

// claim is what the server says of itself, to compare with what is on this
// machine.
func (a *answers) claim(more *extras) claim {
	return claim{
		directory: a.settings.dataDirectory,
		port:      int(a.settings.port),
		started:   a.rights.Started,
		systemID:  more.SystemID,
		grant:     a.rights.grantMonitor(),
	}
}

// unseen names what the role may not see, each with what would let it. Where
// pg_wal is matters only if it is to be looked at.
func (a *answers) unseen(wantsDirectory bool) []string {
	var missing []string
	if !a.rights.Statistics {
		missing = append(missing, "connections and transactions of other roles: the address, age and state of a slot's holder, and which transaction holds WAL: "+a.rights.grantMonitor())
	}
	if !a.rights.WALDirectory {
		missing = append(missing, "the size of pg_wal: "+a.rights.grantMonitor())
	}
	if wantsDirectory && !a.rights.Settings {
		missing = append(missing, "the directory of pg_wal, to measure its volume: "+a.rights.grantMonitor())
	}
	if !a.rights.Control {
		missing = append(missing, "the system identifier: GRANT EXECUTE ON FUNCTION pg_catalog.pg_control_system() TO "+a.rights.quotedRole())
	}
	return missing
}

func (r *rights) quotedRole() string { return pgx.Identifier{r.Role}.Sanitize() }

func (r *rights) grantMonitor() string { return "GRANT pg_monitor TO " + r.quotedRole() }
