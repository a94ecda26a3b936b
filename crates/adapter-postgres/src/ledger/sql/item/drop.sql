-- Some items of a pipeline that is being removed: one write must not hold the ledger for long.
DELETE FROM truekeep_ledger.item AS i
USING (
    SELECT o.scope, o.key
    FROM truekeep_ledger.certificate AS c
    JOIN truekeep_ledger.item AS o ON o.scope = c.scope
    WHERE c.pipeline = $1
    ORDER BY o.scope, o.key
    LIMIT $2
) AS part
WHERE i.scope = part.scope AND i.key = part.key
