-- A relation and everything that is a partition of it, at any depth.
WITH RECURSIVE tree (oid) AS (
  SELECT $1::int8::oid
  UNION
  SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree ON i.inhparent = tree.oid
)
SELECT c.oid::int8, n.nspname::text, c.relname::text, c.relkind::text, c.relpersistence::text,
       EXISTS (SELECT FROM pg_catalog.pg_subscription_rel s WHERE s.srrelid = c.oid)
FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
ORDER BY n.nspname, c.relname
