-- Only this token's lease, and only while it is in force: what expired tells the next taker that
-- its holder did not end it.
DELETE FROM truekeep_ledger.lease
WHERE scope = $1
    AND token = $2
    AND expires_at > $3
    AND expires_at <= $3 + ttl_ms
