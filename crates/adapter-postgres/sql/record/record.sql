-- Takes the locks of the keys' feed rows, in the order of keys, and draws each its number under its lock.
INSERT INTO {feed} AS f (key, version, xid, deleted, row_xmin)
SELECT n.key, nextval('{version}'), pg_current_xact_id(), n.row_xmin IS NULL, n.row_xmin
FROM ({named}) AS n
ORDER BY n.key
ON CONFLICT (key) DO {conflict}
