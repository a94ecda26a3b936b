-- All that a guard is compared with, at one instant: the rules in force, the lease, the run.
-- A claim names no run: it works for the open follow run.
SELECT
    p.rules,
    l.holder, l.token, l.fence, l.expires_at, l.ttl_ms,
    r.version AS run_version, r.state AS run_state,
    r.token AS run_token, r.token_version AS run_token_version
FROM truekeep_ledger.pipeline AS p
LEFT JOIN truekeep_ledger.lease AS l ON l.scope = $2
LEFT JOIN truekeep_ledger.run AS r ON r.scope = $2
    AND (r.id = $3::text
        OR ($3 IS NULL AND r.procedure = 'follow' AND r.state IN ('active', 'failed')))
WHERE p.name = $1 AND p.state <> 'removed'
