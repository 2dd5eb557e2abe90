-- The publisher's role: it may read slots, and reads no table. pg_monitor lets it
-- see who holds a slot, and how much WAL each one keeps.
CREATE ROLE cdcpub LOGIN REPLICATION PASSWORD 'cdcpub';
GRANT pg_monitor TO cdcpub;
