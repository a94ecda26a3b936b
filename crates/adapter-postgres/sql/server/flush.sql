-- A record of our own: once its commit has returned, all before it is on disk.
SELECT pg_logical_emit_message(true, 'truekeep', '')::text
