INSERT INTO {feed} AS f (key, version, xid, deleted)
SELECT k.key, nextval('{version}'), pg_current_xact_id(), true
FROM (SELECT DISTINCT ({canonical}) COLLATE "C" AS key FROM ONLY {emptied} AS t) AS k
WHERE k.key IS NOT NULL ORDER BY k.key
ON CONFLICT (key) DO UPDATE SET version = nextval('{version}'), xid = pg_current_xact_id(), deleted = true, row_xmin = NULL
