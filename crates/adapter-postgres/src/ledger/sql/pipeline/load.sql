-- A pipeline with the rules in force: the number that the pipeline names.
SELECT
    p.name, p.incarnation, p.state, p.revision, p.purge, p.quiet_at, p.newest,
    r.number, r.fingerprint, r.text, r.announced_at
FROM truekeep_ledger.pipeline AS p
JOIN truekeep_ledger.rules AS r ON r.pipeline = p.name AND r.number = p.rules
WHERE p.name = $1 AND p.state <> 'removed'
