-- New rules are a new claim of completeness for every open run.
UPDATE run SET epoch = epoch + 1
WHERE pipeline = :pipeline AND state IN ('active', 'failed')
