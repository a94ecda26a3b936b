-- The newest run of a scope: a later one has a greater epoch.
SELECT
    id, scope, procedure, key, epoch, version, phase, state, failure, attempts, code, text,
    due_at, token, token_version, delivered
FROM run
WHERE scope = :scope AND procedure = :procedure
ORDER BY epoch DESC
LIMIT 1
