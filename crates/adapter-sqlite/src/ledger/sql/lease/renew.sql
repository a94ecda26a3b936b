-- Only what is still this holder's and in force: not expired, and not so far ahead that the clock
-- must have gone back. What is missing in the answer is lost.
UPDATE lease SET expires_at = :expires_at, ttl_ms = :ttl_ms
WHERE holder = :holder
    AND token IN (SELECT value FROM json_each(:tokens))
    AND expires_at > :now
    AND expires_at <= :now + ttl_ms
RETURNING token
