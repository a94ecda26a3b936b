-- What an idle scope looks at. Parked items are never due; one that changed later than now is due
-- now, as for a claim.
SELECT
    r.version,
    p.rules,
    p.state = 'paused' AS paused,
    (SELECT count(*) FROM item
        WHERE scope = :scope AND state IN ('pending', 'leased', 'retry')) AS unsettled,
    (SELECT count(*) FROM item WHERE scope = :scope AND state = 'parked') AS parked,
    (SELECT min(CASE WHEN changed_at > :now THEN :now ELSE due_at END) FROM item
        WHERE scope = :scope AND state IN ('pending', 'leased', 'retry')) AS next_due
FROM run AS r
JOIN pipeline AS p ON p.name = r.pipeline
WHERE r.scope = :scope AND r.procedure = :procedure AND r.state IN ('active', 'failed')
