-- What cdcpub needs in database Shop, from "cdcpub init --print".
--
-- Run it in that database, as a superuser or as the administrator of a managed
-- server, with the file name in place of init.sql:
--
--     psql -X -d "Shop" -f init.sql
--
-- Not in one transaction (psql -1): PostgreSQL refuses to create a slot in a
-- transaction that has written. It may be run again: what exists stays as it is,
-- right or wrong; "cdcpub check" then says whether everything fits.
\set ON_ERROR_STOP on

-- Nothing is done in the wrong place.
DO $$
BEGIN
    IF current_database() <> 'Shop' THEN
        RAISE EXCEPTION 'this is database %, and the slot belongs into Shop', current_database();
    END IF;
    IF pg_is_in_recovery() THEN
        RAISE EXCEPTION 'this server is a standby: connect to the primary';
    END IF;
    IF current_setting('wal_level') <> 'logical' THEN
        RAISE EXCEPTION 'wal_level is %: set it to logical, which takes a restart of the server', current_setting('wal_level');
    END IF;
    IF current_setting('server_version_num')::int < 170000 THEN
        RAISE EXCEPTION 'failover slots exist since PostgreSQL 17, and this is %', current_setting('server_version');
    END IF;
END
$$;

-- The role of the service (the user of postgres.url). It needs no right on any
-- table: rows reach it through the WAL. For the same reason REPLICATION lets it read
-- the changes of every table of each database that it may connect to. So in
-- pg_hba.conf let it in from its own hosts only, and to this database only (the word
-- "replication" there is for physical replication, which it does not need):
--
--     hostssl  "Shop"  "Shop-CDC"  <its address>/32  scram-sha-256
--
-- It gets no password here. Set one with \password "Shop-CDC" in psql, which
-- sends only its hash, or let it in by certificate or cloud token.
-- On Amazon RDS and Aurora membership in rds_replication stands for REPLICATION.
DO $$
BEGIN
    IF to_regrole('"Shop-CDC"') IS NOT NULL THEN
        RETURN;
    END IF;
    IF to_regrole('rds_replication') IS NULL THEN
        CREATE ROLE "Shop-CDC" LOGIN REPLICATION;
    ELSE
        CREATE ROLE "Shop-CDC" LOGIN;
        GRANT rds_replication TO "Shop-CDC";
    END IF;
END
$$;
GRANT CONNECT ON DATABASE "Shop" TO "Shop-CDC";
-- Not needed to publish. With it "cdcpub check" also looks for the topics of the
-- aggregate types in the table, and at its largest payload:
--     GRANT USAGE ON SCHEMA "Sales" TO "Shop-CDC"; GRANT SELECT ON "Sales".outbox TO "Shop-CDC";
--     GRANT USAGE ON SCHEMA billing TO "Shop-CDC"; GRANT SELECT ON billing."order" TO "Shop-CDC";
-- Nor is this. With it "cdcpub run" sees who holds the slot and its WAL, and names
-- them in alerts:
--     GRANT pg_monitor TO "Shop-CDC";

-- The outbox. The application inserts a row in the transaction of the change that
-- it tells about. What counts is the INSERT in the WAL: rows may be deleted again.
-- A new table belongs to whoever runs this. The application's role needs:
--     GRANT INSERT ON "Sales".outbox TO <application>;
--     GRANT INSERT ON billing."order" TO <application>;
CREATE TABLE IF NOT EXISTS "Sales".outbox (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    aggregatetype text NOT NULL,
    aggregateid text NOT NULL,
    type text NOT NULL,
    payload jsonb,
    region text NOT NULL
);
CREATE TABLE IF NOT EXISTS billing."order" (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    aggregatetype text NOT NULL,
    aggregateid text NOT NULL,
    type text NOT NULL,
    payload jsonb,
    region text NOT NULL
);

-- The publication says which tables the slot delivers. Inserts only: an UPDATE or
-- DELETE in the outbox is no event, and needs no replica identity then. Via the
-- root: partitions of the outbox arrive under its own name.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_publication WHERE pubname = 'dbz') THEN
        CREATE PUBLICATION dbz FOR TABLE "Sales".outbox, billing."order"
            WITH (publish = 'insert', publish_via_partition_root = true);
    END IF;
    IF NOT EXISTS (SELECT FROM pg_publication p WHERE pubname = 'dbz' AND (puballtables OR EXISTS (
            SELECT FROM pg_publication_rel WHERE prpubid = p.oid AND prrelid = to_regclass('"Sales".outbox')))) THEN
        ALTER PUBLICATION dbz ADD TABLE "Sales".outbox;
    END IF;
    IF NOT EXISTS (SELECT FROM pg_publication p WHERE pubname = 'dbz' AND (puballtables OR EXISTS (
            SELECT FROM pg_publication_rel WHERE prpubid = p.oid AND prrelid = to_regclass('billing."order"')))) THEN
        ALTER PUBLICATION dbz ADD TABLE billing."order";
    END IF;
END
$$;

-- The slot, last: what was written before its publication existed cannot be decoded.
-- It begins now; rows that are in the outbox already will not be published:
--     SELECT count(*) FROM "Sales".outbox;
--     SELECT count(*) FROM billing."order";
-- From now on the server keeps all WAL until "cdcpub run" confirms it. Without
-- max_slot_wal_keep_size a slot that nobody reads fills the disk: start cdcpub soon.
-- Failover: a standby that synchronises slots keeps a copy, which survives the
-- failover once "cdcpub slot status" calls it ready. An unread one may never be.
-- It waits for every write transaction that is running, no longer than this:
SET statement_timeout = '1500ms';
SELECT pg_create_logical_replication_slot('dbz', 'pgoutput', failover => true)
    WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = 'dbz');
RESET statement_timeout;
