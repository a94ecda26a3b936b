-- What was vouched for is so no longer. What never was complete stays as it is.
UPDATE truekeep_ledger.certificate SET state = 'stale', code = $2, changed_at = $3
WHERE pipeline = $1 AND state IN ('complete', 'partial')
