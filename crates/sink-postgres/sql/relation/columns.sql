-- Generated columns are left out: whoever adds one changes nothing that is written here.
SELECT a.attname::text, format_type(a.atttypid, a.atttypmod), l.collname::text,
       EXISTS (
         SELECT FROM pg_catalog.pg_index AS i
         WHERE i.indrelid = a.attrelid AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum
           AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL
       )
FROM pg_catalog.pg_attribute AS a
LEFT JOIN pg_catalog.pg_collation AS l ON l.oid = a.attcollation
WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attnum
