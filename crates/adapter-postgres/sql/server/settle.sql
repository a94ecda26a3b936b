-- Whether everything that a snapshot taken before this can have seen is on disk.
SELECT at.log::text, pg_current_wal_flush_lsn() >= at.log
FROM (SELECT pg_current_wal_insert_lsn() AS log OFFSET 0) AS at
