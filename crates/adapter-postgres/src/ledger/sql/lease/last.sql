-- When the last lease of a pipeline ends. An expiry further away than its length means that the
-- clock went back.
SELECT max(least(expires_at, $2 + ttl_ms)) AS last
FROM truekeep_ledger.lease
WHERE pipeline = $1
