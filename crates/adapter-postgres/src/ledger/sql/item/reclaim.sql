-- What is leased still was left so by a claim that ended without settling it, since a holder has
-- one claim at a time. It is due whatever its time says, and is claimed alone.
UPDATE truekeep_ledger.item SET
    state = 'leased',
    attempts = least(attempts + 1, 4294967295),
    changed_at = $2,
    lease = $3
WHERE scope = $1 AND key = (
    SELECT key FROM truekeep_ledger.item
    WHERE scope = $1 AND state = 'leased'
    ORDER BY due_at, key
    LIMIT 1
)
RETURNING key, version, kind, state, attempts, due_at, code, reason, changed_at, lease
