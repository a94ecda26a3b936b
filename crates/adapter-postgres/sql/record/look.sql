-- Under the locks, in a statement of its own, says what the table says: only what changed while the locks were
-- waited for differs from what was said before.
UPDATE {feed} AS f SET deleted = n.row_xmin IS NULL, row_xmin = n.row_xmin
FROM ({named}) AS n
WHERE f.key = n.key AND (f.deleted <> (n.row_xmin IS NULL) OR f.row_xmin IS DISTINCT FROM n.row_xmin)
