-- Whether anything was written that is not visible in $1, or is still to be folded; and the snapshot this was seen in.
-- Each part asks for the first row in the order of an index: a planner that expects most rows to fit (all of one
-- load) would read the table in its own order until it meets one, all of it where there is none.
SELECT (SELECT xid FROM {feed} WHERE xid >= pg_snapshot_xmax($1::text::pg_snapshot) ORDER BY xid, version LIMIT 1)
         IS NOT NULL
         OR EXISTS (SELECT FROM pg_snapshot_xip($1::text::pg_snapshot) AS running(xid),
                    LATERAL (SELECT FROM {feed} AS f WHERE f.xid = running.xid ORDER BY f.xid, f.version LIMIT 1) AS f)
         OR (SELECT id FROM {mark} ORDER BY id LIMIT 1) IS NOT NULL,
       pg_current_snapshot()::text
