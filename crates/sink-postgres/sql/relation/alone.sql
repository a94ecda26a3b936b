-- For this transaction, against others of ours: two that make a table at once would fail.
SELECT pg_advisory_xact_lock(hashtextextended($1, 0))
