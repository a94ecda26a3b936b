-- The source as one consumer sees it, all in one snapshot but for the server's own state, which is read
-- after the snapshot was taken.
SELECT pg_current_snapshot()::text, c.incarnation, c.trusted, c.filling IS NOT NULL, c.pruned::text, c.key_form,
       r.counter, r.passed::text,
       (SELECT s.system_identifier::text FROM pg_control_system() AS s),
       (SELECT d.oid::int8 FROM pg_catalog.pg_database AS d WHERE d.datname = current_database()),
       -- The control file learns of a new timeline only with the next checkpoint.
       left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
       pg_current_wal_insert_lsn()::text,
       -- Where the log of an earlier timeline ended, as long as the server remembers.
       pg_last_wal_replay_lsn()::text,
       EXISTS (SELECT FROM {mark}),
       ({signature}),
       ({shape})
FROM truekeep.capture AS c
LEFT JOIN truekeep.consumer AS r ON r.feed = c.feed AND r.ledger = $2 AND r.pipeline = $3
WHERE c.feed = $1
