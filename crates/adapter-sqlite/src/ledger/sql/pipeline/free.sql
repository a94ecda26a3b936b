-- The end of a removal: the name is free.
UPDATE pipeline SET state = 'removed', purge = 0, quiet_at = NULL
WHERE name = :pipeline
