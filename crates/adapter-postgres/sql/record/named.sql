-- Keys that were named, each once, with the row that has it now.
SELECT k.key, t.xmin AS row_xmin
FROM (SELECT DISTINCT ON (q.key) q.* FROM ({source}) AS q WHERE q.key IS NOT NULL ORDER BY q.key) AS k
LEFT JOIN {table} AS t ON {same}
