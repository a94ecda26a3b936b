-- What is leased still was left so by a claim that ended without settling it, since a holder has
-- one claim at a time. It is due whatever its time says, and is claimed alone.
UPDATE item SET
    state = 'leased',
    attempts = min(attempts + 1, 4294967295),
    changed_at = :now,
    lease = :lease
WHERE id = (
    SELECT id FROM item
    WHERE scope = :scope AND state = 'leased'
    ORDER BY due_at, key
    LIMIT 1
)
RETURNING key, version, kind, state, attempts, due_at, code, reason, changed_at, lease
