-- The run of this key, else the open run of another key.
SELECT
    id, scope, procedure, key, epoch, version, phase, state, failure, attempts, code, text,
    due_at, token, token_version, delivered
FROM truekeep_ledger.run
WHERE scope = $1 AND procedure = $2 AND (key = $3 OR state IN ('active', 'failed'))
ORDER BY key = $3 DESC
LIMIT 1
