-- A scope's lease, in force or not.
SELECT holder, token, fence, expires_at, ttl_ms
FROM lease
WHERE scope = :scope
