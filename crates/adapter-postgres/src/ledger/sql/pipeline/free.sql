-- The end of a removal: the name is free.
UPDATE truekeep_ledger.pipeline SET state = 'removed', purge = false, quiet_at = NULL
WHERE name = $1
