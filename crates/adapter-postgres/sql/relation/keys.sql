-- The unique indexes of a relation that hold for every row, the primary key first, each as its columns.
SELECT i.indisprimary, array_agg(a.attname::text ORDER BY k.place)
FROM pg_catalog.pg_index i
CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
-- An expression has no column, and what is only included is no part of the key.
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum AND k.attnum > 0
WHERE i.indrelid = $1::int8::oid AND i.indisunique AND i.indisvalid AND i.indpred IS NULL
  AND k.place <= i.indnkeyatts
GROUP BY i.indexrelid, i.indisprimary
HAVING bool_and(a.attname IS NOT NULL)
ORDER BY i.indisprimary DESC
