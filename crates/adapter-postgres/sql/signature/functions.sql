-- Our functions as they stand.
SELECT p.proname::text, p.prosrc, p.prosecdef, coalesce(p.proconfig, '{}')
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = 'truekeep' AND p.proname LIKE $1
