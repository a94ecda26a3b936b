-- Some items of a pipeline that is being removed: one write must not hold the ledger for long.
DELETE FROM item
WHERE id IN (
    SELECT i.id
    FROM certificate AS c
    CROSS JOIN item AS i ON i.scope = c.scope
    WHERE c.pipeline = :pipeline
    ORDER BY c.scope, i.key
    LIMIT :limit
)
