-- The relation of a name: as it stands if it is on the search path, else what stands before its first dot is the schema.
SELECT c.oid::int8, n.nspname::text, c.relname::text, c.relkind::text, c.relpersistence::text,
       c.relispartition, row_security_active(c.oid),
       -- Plain inheritance, from either side.
       c.relkind = 'r' AND EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhparent = c.oid)
       OR NOT c.relispartition AND EXISTS (SELECT FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 't')
  AND (c.relname = $1 AND pg_catalog.pg_table_is_visible(c.oid) OR n.nspname = $2 AND c.relname = $3)
ORDER BY c.relname = $1 AND pg_catalog.pg_table_is_visible(c.oid) DESC
LIMIT 1
