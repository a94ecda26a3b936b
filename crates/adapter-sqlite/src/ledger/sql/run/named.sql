-- A run by its id, whether it goes on or has ended.
SELECT
    id, scope, procedure, key, epoch, version, phase, state, failure, attempts, code, text,
    due_at, token, token_version, delivered
FROM run
WHERE id = :run AND scope = :scope
