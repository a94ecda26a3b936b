-- Columns that others added: generated ones, the only kind that is let be.
SELECT a.attname::text FROM pg_catalog.pg_attribute AS a
WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> ''
ORDER BY a.attnum
