-- Rows that are not visible in $1: exactly those that came after it, and those that were running then. Each half
-- is read in the order of the index, so a page costs what it holds, however old the snapshot is.
SELECT key, version, xid::text, deleted
FROM (
  (SELECT key, version, xid, deleted FROM {feed}
   WHERE xid >= pg_snapshot_xmax($1::pg_snapshot) AND (xid, version) > ($2::text::xid8, $3){within}
   ORDER BY xid, version LIMIT $4)
  UNION ALL
  (SELECT key, version, xid, deleted FROM {feed}
   WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip($1::pg_snapshot))) AND (xid, version) > ($2::text::xid8, $3){within}
   ORDER BY xid, version LIMIT $4)
) AS page
ORDER BY page.xid, page.version LIMIT $4
