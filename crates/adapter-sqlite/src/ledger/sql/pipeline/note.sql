-- What is known of a removal only grows.
UPDATE pipeline SET purge = max(purge, :purge), newest = max(newest, :newest)
WHERE name = :pipeline
