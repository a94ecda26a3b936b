-- Some tombstones that every consumer has passed, and the snapshot of the one that has passed the least.
WITH least AS (
  SELECT passed FROM truekeep.consumer WHERE feed = $1
  ORDER BY pg_snapshot_xmax(passed), pg_snapshot_xmin(passed) LIMIT 1
),
passed AS (
  SELECT f.key, f.xid FROM {feed} AS f
  WHERE f.deleted AND f.xid < (SELECT pg_snapshot_xmax(passed) FROM least)
    AND NOT EXISTS (
      SELECT FROM truekeep.consumer AS r WHERE r.feed = $1 AND NOT pg_visible_in_snapshot(f.xid, r.passed))
  ORDER BY f.xid LIMIT $2
),
gone AS (
  -- A key that came back meanwhile, even if it went again, has a change that nobody has passed.
  DELETE FROM {feed} AS f USING passed
  WHERE f.key = passed.key AND f.xid = passed.xid AND f.deleted RETURNING f.key
)
SELECT (SELECT count(*) FROM gone), (SELECT passed::text FROM least)
