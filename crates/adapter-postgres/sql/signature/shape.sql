-- Moves with the relation's columns: what statements were made for.
SELECT string_agg(concat_ws(' ', a.attrelid, a.attnum, a.xmin), ',' ORDER BY a.attnum)
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = {schema} AND c.relname = {name} AND a.attnum > 0
