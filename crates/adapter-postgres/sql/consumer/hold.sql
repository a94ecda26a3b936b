-- The acknowledgement that is held, kept from others until the next one is written.
SELECT counter, passed::text FROM truekeep.consumer
WHERE feed = $1 AND ledger = $2 AND pipeline = $3 FOR UPDATE
