-- A scope's lease, in force or not.
SELECT holder, token, fence, expires_at, ttl_ms
FROM truekeep_ledger.lease
WHERE scope = $1
