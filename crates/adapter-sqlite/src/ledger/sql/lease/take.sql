-- The caller has seen, in this transaction, that no lease of the scope is in force.
INSERT INTO lease (scope, pipeline, holder, token, fence, expires_at, ttl_ms)
VALUES (:scope, :pipeline, :holder, :token, :fence, :expires_at, :ttl_ms)
ON CONFLICT (scope) DO UPDATE SET
    holder = excluded.holder,
    token = excluded.token,
    fence = excluded.fence,
    expires_at = excluded.expires_at,
    ttl_ms = excluded.ttl_ms
