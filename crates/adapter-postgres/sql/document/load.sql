-- Documents of some keys. One that is too large, and what is over the bytes asked for, is not sent.
WITH asked AS (
  SELECT k.ord, k.key, {parse} FROM unnest($1::text[]) WITH ORDINALITY AS k (key, ord)
),
document AS MATERIALIZED (
  SELECT truekeep_key.ord, {carried}
  FROM asked AS truekeep_key
  -- The row whose key has exactly this text, if it is wanted.
  CROSS JOIN LATERAL (
    SELECT {row} FROM {table}
    WHERE {same} AND ({canonical}) COLLATE "C" = truekeep_key.key COLLATE "C"{live}
  ) AS truekeep_row
  {query}
),
sized AS (SELECT *, {size} AS size FROM document),
running AS (
  SELECT *, sum(CASE WHEN size <= {document_max} THEN size ELSE 0 END) OVER (ORDER BY ord, size) AS total,
         row_number() OVER (ORDER BY ord, size) AS place
  FROM sized
)
SELECT ord, size, total <= $2 OR place = 1, {sent} FROM running ORDER BY place
