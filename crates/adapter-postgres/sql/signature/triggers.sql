-- Our triggers as they stand, with their functions.
WITH RECURSIVE tree (oid) AS (
  SELECT c.oid
  FROM unnest({schemas}::text[], {tables}::text[]) AS asked (nsp, rel)
  JOIN pg_catalog.pg_namespace n ON n.nspname = asked.nsp
  JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = asked.rel
  UNION
  SELECT i.inhrelid FROM pg_catalog.pg_inherits i JOIN tree ON i.inhparent = tree.oid
)
SELECT n.nspname::text, c.relname::text, g.tgname::text, g.tgtype, g.tgenabled = 'A',
       concat_ws(' ', g.tgoldtable, g.tgnewtable), p.proname::text, q.nspname::text
FROM pg_catalog.pg_trigger g JOIN tree ON g.tgrelid = tree.oid
JOIN pg_catalog.pg_class c ON c.oid = g.tgrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_proc p ON p.oid = g.tgfoid JOIN pg_catalog.pg_namespace q ON q.oid = p.pronamespace
WHERE g.tgname LIKE {triggers} AND NOT g.tgisinternal AND g.tgparentid = 0
