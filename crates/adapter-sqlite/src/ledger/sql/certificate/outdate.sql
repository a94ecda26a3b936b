-- What was vouched for is so no longer. What never was complete stays as it is.
UPDATE certificate SET state = 'stale', code = :code, changed_at = :now
WHERE pipeline = :pipeline AND state IN ('complete', 'partial')
