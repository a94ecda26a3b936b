-- The oldest due of what may be tried now; ties by key, so that every ledger answers the same.
-- An item that changed later than now tells that the clock went back: what it waits for may be as
-- far away as the clock was ahead, so it is due. Those are looked for by when they changed, and there
-- are hardly any: in the order of claims all that waits would be looked through.
WITH later AS MATERIALIZED (
    SELECT due_at, key FROM truekeep_ledger.item
    WHERE scope = $1 AND state IN ('pending', 'retry') AND state <> 'parked' AND changed_at > $2
), oldest AS (
    SELECT key FROM (
        (
            SELECT due_at, key FROM truekeep_ledger.item
            WHERE scope = $1 AND state IN ('pending', 'retry') AND state <> 'parked'
                AND due_at <= $2
            ORDER BY due_at, key
            LIMIT $4
        )
        UNION ALL
        SELECT due_at, key FROM later WHERE due_at > $2
    ) AS due
    ORDER BY due_at, key
    LIMIT $4
)
UPDATE truekeep_ledger.item AS i SET
    state = 'leased',
    attempts = least(i.attempts + 1, 4294967295),
    changed_at = $2,
    lease = $3
FROM oldest
WHERE i.scope = $1 AND i.key = oldest.key
RETURNING
    i.key, i.version, i.kind, i.state, i.attempts, i.due_at, i.code, i.reason, i.changed_at, i.lease
