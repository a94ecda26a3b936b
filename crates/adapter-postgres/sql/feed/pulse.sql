-- Whether anything was written that is not visible in $1, or is still to be folded; and the snapshot this was seen in.
SELECT EXISTS (SELECT FROM {feed} WHERE xid >= pg_snapshot_xmax($1::text::pg_snapshot))
         OR EXISTS (SELECT FROM {feed} WHERE xid = ANY (ARRAY(SELECT pg_snapshot_xip($1::text::pg_snapshot))))
         OR EXISTS (SELECT FROM {mark}),
       pg_current_snapshot()::text
