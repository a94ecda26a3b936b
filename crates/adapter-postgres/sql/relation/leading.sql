-- Whether an index finds rows by these columns: it begins with them, in any order, and holds every row.
SELECT EXISTS (
  SELECT FROM pg_catalog.pg_index AS i
  JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid JOIN pg_catalog.pg_am AS m ON m.oid = c.relam
  WHERE i.indrelid = to_regclass($1) AND i.indisvalid AND i.indpred IS NULL AND m.amname IN ('btree', 'hash')
    AND (
      SELECT array_agg(a.attname::text ORDER BY a.attname COLLATE "C")
      FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, place)
      JOIN pg_catalog.pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
      WHERE k.place <= cardinality($2::text[])
    ) = (SELECT array_agg(own ORDER BY own COLLATE "C") FROM unnest($2::text[]) AS own)
)
