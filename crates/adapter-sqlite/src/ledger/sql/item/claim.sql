-- The oldest due of what may be tried now; ties by key, so that every ledger answers the same.
-- An item that changed later than now tells that the clock went back: what it waits for may be as
-- far away as the clock was ahead, so it is due.
UPDATE item SET
    state = 'leased',
    attempts = min(attempts + 1, 4294967295),
    changed_at = :now,
    lease = :lease
WHERE id IN (
    SELECT id FROM item
    WHERE scope = :scope AND state IN ('pending', 'retry')
        AND (due_at <= :now OR changed_at > :now)
    ORDER BY due_at, key
    LIMIT :limit
)
RETURNING key, version, kind, state, attempts, due_at, code, reason, changed_at, lease
