-- All that a guard is compared with, at one instant: the rules in force, the lease, the run.
-- A claim names no run: it works for the open follow run.
SELECT
    p.rules,
    l.holder, l.token, l.fence, l.expires_at, l.ttl_ms,
    r.version AS run_version, r.state AS run_state,
    r.token AS run_token, r.token_version AS run_token_version
FROM pipeline AS p
LEFT JOIN lease AS l ON l.scope = :scope
LEFT JOIN run AS r ON r.scope = :scope
    AND (r.id = :run
        OR (:run IS NULL AND r.procedure = 'follow' AND r.state IN ('active', 'failed')))
WHERE p.name = :pipeline AND p.state <> 'removed'
