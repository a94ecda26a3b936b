-- The caller has seen, in this transaction, that no lease of the scope is in force.
INSERT INTO truekeep_ledger.lease (scope, pipeline, holder, token, fence, expires_at, ttl_ms)
VALUES ($1, $2, $3, $4, $5, $6, $7)
ON CONFLICT (scope) DO UPDATE SET
    holder = excluded.holder,
    token = excluded.token,
    fence = excluded.fence,
    expires_at = excluded.expires_at,
    ttl_ms = excluded.ttl_ms
