-- When the last lease of a pipeline ends. An expiry further away than its length means that the
-- clock went back.
SELECT max(min(expires_at, :now + ttl_ms)) AS last
FROM lease
WHERE pipeline = :pipeline
