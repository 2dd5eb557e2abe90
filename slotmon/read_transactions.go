package slotmon

// transactionsSQL reads the transactions that may hold a slot back. Those that
// write come first into the limit, since only they hold restart_lsn; a crowd of
// long reports must not hide them. Left out are walsenders, parallel workers,
// whose leader is there, and background processes that only read: an autovacuum
// worker's snapshot holds nothing. Without pg_read_all_stats xact_start is NULL
// for other roles, and without an age a transaction says nothing.
//
// What began of a prepared transaction is its PREPARE.
const transactionsSQL = `SELECT row_to_json(x) FROM (
	SELECT * FROM (
		SELECT NULL AS gid, pid, usename AS "user", datname AS database, application_name, xact_start AS began, query_start, state,
			backend_xid IS NOT NULL AS writes
		FROM pg_stat_activity
		WHERE pid <> pg_backend_pid() AND xact_start IS NOT NULL AND backend_type NOT IN ('walsender', 'parallel worker')
			AND (backend_xid IS NOT NULL OR backend_xmin IS NOT NULL AND backend_type = 'client backend')
		UNION ALL
		SELECT gid, NULL, owner, database, NULL, prepared, NULL, NULL, true FROM pg_prepared_xacts) every
	ORDER BY writes DESC, began LIMIT 20) x ORDER BY began`
