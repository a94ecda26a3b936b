-- Everything of the user's whose text decides what a document is, wherever it is named.
SELECT c.relname::text, 'view ' || c.oid::regclass::text || ' ' || pg_get_viewdef(c.oid)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('v', 'm') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
UNION ALL
SELECT p.proname::text, pg_get_functiondef(p.oid)
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE p.prokind IN ('f', 'p') AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_' AND n.nspname <> 'truekeep'
  -- An extension's are the extension's.
  AND NOT EXISTS (
    SELECT FROM pg_catalog.pg_depend d
    WHERE d.classid = 'pg_catalog.pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e')
ORDER BY 1, 2
