-- What cdcpub needs in database shop, from "cdcpub init --print".
--
-- Run it in that database, as a superuser or as the administrator of a managed
-- server, with the file name in place of init.sql:
--
--     psql -X -d shop -f init.sql
--
-- Not in one transaction (psql -1): PostgreSQL refuses to create a slot in a
-- transaction that has written. It may be run again: what exists stays as it is,
-- right or wrong; "cdcpub check" then says whether everything fits.
\set ON_ERROR_STOP on

-- Nothing is done in the wrong place.
DO $$
BEGIN
    IF current_database() <> 'shop' THEN
        RAISE EXCEPTION 'this is database %, and the slot belongs into shop', current_database();
    END IF;
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION 'this server is a standby: connect to the primary';
    END IF;
    IF current_setting('wal_level') <> 'logical' THEN
        RAISE EXCEPTION 'wal_level is %: set it to logical, which takes a restart of the server', current_setting('wal_level');
    END IF;
END
$$;

-- The role of the service (the user of postgres.url). It needs no right on any
-- table: rows reach it through the WAL. For the same reason REPLICATION lets it read
-- the changes of every table of each database that it may connect to. So in
-- pg_hba.conf let it in from its own hosts only, and to this database only (the word
-- "replication" there is for physical replication, which it does not need):
--
--     hostssl  shop  cdcpub  <its address>/32  scram-sha-256
--
-- It gets no password here. Set one with \password cdcpub in psql, which
-- sends only its hash, or let it in by certificate or cloud token.
-- On Amazon RDS and Aurora membership in rds_replication stands for REPLICATION.
DO $$
BEGIN
    IF to_regrole('cdcpub') IS NOT NULL THEN
        RETURN;
    END IF;
    IF to_regrole('rds_replication') IS NULL THEN
        CREATE ROLE cdcpub LOGIN REPLICATION;
    ELSE
        CREATE ROLE cdcpub LOGIN;
        GRANT rds_replication TO cdcpub;
    END IF;
END
$$;
GRANT CONNECT ON DATABASE shop TO cdcpub;
-- Not needed to publish. With it "cdcpub check" also looks for the topics of the
-- aggregate types in the table, and at its largest payload:
--     GRANT USAGE ON SCHEMA public TO cdcpub; GRANT SELECT ON public.outbox TO cdcpub;
-- Nor is this. With it "cdcpub run" sees who holds the slot and its WAL, and names
-- them in alerts:
--     GRANT pg_monitor TO cdcpub;

-- A role that only watches: for "cdcpub slot watch", "cdcpub slot status" and
-- dashboards. pg_monitor lets it see the lag of every walsender and the size of
-- pg_wal; it can change nothing. It gets no password here either.
DO $$
BEGIN
    IF to_regrole('cdcpub_monitor') IS NOT NULL THEN
        RETURN;
    END IF;
    CREATE ROLE cdcpub_monitor LOGIN;
    GRANT pg_monitor TO cdcpub_monitor;
END
$$;
GRANT CONNECT ON DATABASE shop TO cdcpub_monitor;

-- The outbox. The application inserts a row in the transaction of the change that
-- it tells about. What counts is the INSERT in the WAL: rows may be deleted again.
-- Two writers of one aggregate must take turns, by a lock on its row, so that commit
-- order is version order; the UNIQUE constraint stops those that do not.
-- A new table belongs to whoever runs this. The application's role needs:
--     GRANT INSERT ON public.outbox TO <application>;
CREATE TABLE IF NOT EXISTS public.outbox (
    event_id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    aggregate_type text NOT NULL,
    aggregate_id text NOT NULL,
    aggregate_version bigint NOT NULL,
    event_type text NOT NULL,
    payload jsonb,
    schema_version integer,
    headers jsonb,
    occurred_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (aggregate_type, aggregate_id, aggregate_version)
);

-- The publication says which tables the slot delivers. Inserts only: an UPDATE or
-- DELETE in the outbox is no event, and needs no replica identity then. Via the
-- root: partitions of the outbox arrive under its own name.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_publication WHERE pubname = 'cdcpub') THEN
        CREATE PUBLICATION cdcpub FOR TABLE public.outbox
            WITH (publish = 'insert', publish_via_partition_root = true);
    END IF;
    IF NOT EXISTS (SELECT FROM pg_publication p WHERE pubname = 'cdcpub' AND (puballtables OR EXISTS (
            SELECT FROM pg_publication_rel WHERE prpubid = p.oid AND prrelid = to_regclass('public.outbox')))) THEN
        ALTER PUBLICATION cdcpub ADD TABLE public.outbox;
    END IF;
END
$$;

-- The slot, last: what was written before its publication existed cannot be decoded.
-- It begins now; rows that are in the outbox already will not be published:
--     SELECT count(*) FROM public.outbox;
-- From now on the server keeps all WAL until "cdcpub run" confirms it. Without
-- max_slot_wal_keep_size a slot that nobody reads fills the disk: start cdcpub soon.
-- It waits for every write transaction that is running, no longer than this:
SET statement_timeout = '60s';
SELECT pg_create_logical_replication_slot('cdcpub', 'pgoutput')
    WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = 'cdcpub');
RESET statement_timeout;
