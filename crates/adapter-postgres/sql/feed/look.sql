-- What readers in this database may know of the feed, in one snapshot: which one it is, whether every change is
-- recorded, whether it has anything that is not visible in $1 or is still to be folded.
SELECT pg_current_snapshot(),
       concat(c.incarnation, '.', (SELECT s.system_identifier FROM pg_control_system() AS s),
              '.', (SELECT d.oid::int8 FROM pg_database AS d WHERE d.datname = current_database())),
       c.filling IS NULL AND coalesce(c.trusted = ({signature}
       ), false),
       EXISTS (SELECT FROM {feed} WHERE xid >= pg_snapshot_xmax($1))
         OR EXISTS (SELECT FROM {feed} WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip($1))))
         OR EXISTS (SELECT FROM {mark})
FROM truekeep.capture AS c
WHERE c.feed = {stem}
