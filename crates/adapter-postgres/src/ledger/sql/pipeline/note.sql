-- What is known of a removal only grows.
UPDATE truekeep_ledger.pipeline SET purge = purge OR $2, newest = greatest(newest, $3)
WHERE name = $1
