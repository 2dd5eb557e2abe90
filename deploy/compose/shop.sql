-- A shop: each statement changes an order and writes the event of the change, in
-- one transaction. The row lock that the change takes makes the order of commits
-- that of the versions.
CREATE TABLE IF NOT EXISTS orders (id int PRIMARY KEY, version bigint NOT NULL, total int NOT NULL);

WITH changed AS (
    INSERT INTO orders AS o (id, version, total)
    VALUES (1 + floor(random() * 20), 1, 10 + floor(random() * 90))
    ON CONFLICT (id) DO UPDATE SET version = o.version + 1, total = o.total + excluded.total
    RETURNING id, version, total
)
INSERT INTO outbox (aggregate_type, aggregate_id, aggregate_version, event_type, payload)
SELECT 'order', id::text, version,
       CASE version WHEN 1 THEN 'OrderPlaced' ELSE 'OrderChanged' END,
       jsonb_build_object('order', id, 'total', total)
FROM changed \watch 0.1
