-- The run of this key, else the open run of another key.
SELECT
    id, scope, procedure, key, epoch, version, phase, state, failure, attempts, code, text,
    due_at, token, token_version, delivered
FROM run
WHERE scope = :scope AND procedure = :procedure AND (key = :key OR state IN ('active', 'failed'))
ORDER BY key = :key DESC
LIMIT 1
