-- What an idle scope looks at. Parked items are never due; one that changed later than now is due
-- now, as for a claim: only then are they looked through.
SELECT
    r.version,
    p.rules,
    p.state = 'paused' AS paused,
    coalesce(t.unsettled, 0) AS unsettled,
    coalesce(t.parked, 0) AS parked,
    CASE
        WHEN EXISTS (
            SELECT FROM truekeep_ledger.item
            WHERE scope = $1 AND state <> 'parked' AND changed_at > $3
        )
        THEN (
            SELECT min(CASE WHEN changed_at > $3 THEN $3 ELSE due_at END)
            FROM truekeep_ledger.item
            WHERE scope = $1 AND state <> 'parked'
        )
        ELSE (
            SELECT due_at FROM truekeep_ledger.item
            WHERE scope = $1 AND state <> 'parked'
            ORDER BY due_at, key
            LIMIT 1
        )
    END AS next_due
FROM truekeep_ledger.run AS r
JOIN truekeep_ledger.pipeline AS p ON p.name = r.pipeline
LEFT JOIN truekeep_ledger.tally AS t ON t.scope = r.scope
WHERE r.scope = $1 AND r.procedure = $2 AND r.state IN ('active', 'failed')
