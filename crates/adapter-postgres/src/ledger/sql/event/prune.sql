-- Some of what is too old: a clean-up of any size must not hold up this write.
DELETE FROM truekeep_ledger.event
WHERE id IN (
    SELECT id FROM truekeep_ledger.event
    WHERE scope = $1 AND at < $2
    ORDER BY at, id
    LIMIT $3
)
