-- Only what is still this holder's and in force: not expired, and not so far ahead that the clock
-- must have gone back. What is missing in the answer is lost.
UPDATE truekeep_ledger.lease SET expires_at = $4, ttl_ms = $5
WHERE holder = $1
    AND token = ANY ($2::text[])
    AND expires_at > $3
    AND expires_at <= $3 + ttl_ms
RETURNING token
