-- New rules are a new claim of completeness for every open run.
UPDATE truekeep_ledger.run SET epoch = epoch + 1
WHERE pipeline = $1 AND state IN ('active', 'failed')
