-- The columns of a relation, in their order.
SELECT a.attname::text, a.atttypid::int8, a.attnotnull,
       -- The collation is named where it is not that of the type, so that an index of it can be used.
       CASE WHEN a.attcollation <> 0 THEN quote_ident(n.nspname) || '.' || quote_ident(l.collname) END,
       coalesce(l.collisdeterministic, true)
FROM pg_catalog.pg_attribute a
LEFT JOIN pg_catalog.pg_collation l ON l.oid = a.attcollation
LEFT JOIN pg_catalog.pg_namespace n ON n.oid = l.collnamespace
WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
