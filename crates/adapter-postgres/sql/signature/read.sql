-- Everything that decides whether changes are recorded, as of the snapshot: the row versions of our triggers,
-- their functions, the columns and the partitions, of the relation and of every watched table.
WITH RECURSIVE tree (oid) AS (
  SELECT c.oid
  FROM unnest({schemas}::text[], {tables}::text[]) AS asked (nsp, rel)
  JOIN pg_catalog.pg_namespace n ON n.nspname = asked.nsp
  JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = asked.rel
  UNION
  SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree ON i.inhparent = tree.oid
),
ours AS (
  SELECT g.tgrelid, g.tgname, g.tgfoid, g.xmin
  FROM pg_catalog.pg_trigger g JOIN tree ON g.tgrelid = tree.oid
  WHERE g.tgname LIKE {triggers} AND NOT g.tgisinternal
),
line (said) AS (
  SELECT concat_ws(' ', 'relation', c.oid, c.relkind, c.relpersistence, c.relrowsecurity, c.relforcerowsecurity)
  FROM tree JOIN pg_catalog.pg_class c ON c.oid = tree.oid
  UNION ALL
  SELECT concat_ws(' ', 'trigger', tgrelid, tgname, xmin) FROM ours
  UNION ALL
  SELECT concat_ws(' ', 'function', p.oid, p.xmin)
  FROM pg_catalog.pg_proc p WHERE p.oid IN (SELECT tgfoid FROM ours)
  UNION ALL
  SELECT concat_ws(' ', 'column', a.attrelid, a.attnum, a.xmin)
  FROM pg_catalog.pg_attribute a JOIN tree ON a.attrelid = tree.oid WHERE a.attnum > 0
  UNION ALL
  SELECT concat_ws(' ', 'partition', i.inhrelid, i.inhparent, i.xmin)
  FROM pg_catalog.pg_inherits i JOIN tree ON i.inhrelid = tree.oid
  UNION ALL
  SELECT concat_ws(' ', 'subscribed', s.srrelid)
  FROM pg_catalog.pg_subscription_rel s JOIN tree ON s.srrelid = tree.oid
)
SELECT encode(sha256(convert_to(string_agg(said, chr(10) ORDER BY said COLLATE "C"), 'UTF8')), 'hex') FROM line
