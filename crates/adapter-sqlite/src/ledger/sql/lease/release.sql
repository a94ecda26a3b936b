-- Only this token's lease, and only while it is in force: what expired tells the next taker that
-- its holder did not end it.
DELETE FROM lease
WHERE scope = :scope
    AND token = :token
    AND expires_at > :now
    AND expires_at <= :now + ttl_ms
