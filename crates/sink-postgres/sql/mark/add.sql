-- The first generation is seen without a swap. A mirror that was emptied or dropped is as new.
INSERT INTO {marks} (generation, swap) VALUES ($1, CASE WHEN $1::bigint = 1 THEN 0 END)
ON CONFLICT (generation) DO UPDATE
SET ledger = NULL, pipeline = NULL, rules = NULL, fence = NULL, number = NULL,
    holds_records = false, removed = false
