-- Tables that somebody may have meant.
SELECT CASE WHEN pg_catalog.pg_table_is_visible(c.oid) THEN c.relname::text ELSE n.nspname || '.' || c.relname END
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
  AND n.nspname <> 'truekeep' AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
ORDER BY 1
