-- The newest run of a scope: a later one has a greater epoch.
SELECT
    id, scope, procedure, key, epoch, version, phase, state, failure, attempts, code, text,
    due_at, token, token_version, delivered
FROM truekeep_ledger.run
WHERE scope = $1 AND procedure = $2
ORDER BY epoch DESC
LIMIT 1
