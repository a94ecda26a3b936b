-- The source as one consumer sees it, all in one snapshot but for the server's own state, which is read
-- after the snapshot was taken.
SELECT pg_current_snapshot()::text, c.incarnation, ({born}), c.trusted, c.filling IS NOT NULL, c.pruned::text,
       r.counter, r.passed::text, r.start,
       -- The control file learns of a new timeline only with the next checkpoint.
       left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
       pg_current_wal_insert_lsn()::text,
       ({start}),
       -- Kept until the first start after a promotion: until then what was replayed is where the timeline before ended.
       pg_last_wal_receive_lsn() IS NOT NULL,
       EXISTS (SELECT FROM {mark}),
       ({signature}),
       ({shape})
FROM truekeep.capture AS c
LEFT JOIN truekeep.consumer AS r ON r.feed = c.feed AND r.ledger = $2 AND r.pipeline = $3
WHERE c.feed = $1
