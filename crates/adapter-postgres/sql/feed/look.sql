-- What readers in this database may know of the feed, in one snapshot: which one it is, whether every change is
-- recorded, whether it has anything that is not visible in $1 or is still to be folded (asked as in pulse.sql).
SELECT pg_current_snapshot(),
       concat(c.incarnation, '.', (SELECT s.system_identifier FROM pg_control_system() AS s),
              '.', (SELECT d.oid::int8 FROM pg_database AS d WHERE d.datname = current_database())),
       c.filling IS NULL AND coalesce(c.trusted = ({signature}
       ), false),
       (SELECT xid FROM {feed} WHERE xid >= pg_snapshot_xmax($1) ORDER BY xid, version LIMIT 1) IS NOT NULL
         OR EXISTS (SELECT FROM pg_snapshot_xip($1) AS running(xid),
                    LATERAL (SELECT FROM {feed} AS f WHERE f.xid = running.xid ORDER BY f.xid, f.version LIMIT 1) AS f)
         OR (SELECT id FROM {mark} ORDER BY id LIMIT 1) IS NOT NULL
FROM truekeep.capture AS c
WHERE c.feed = {stem}
