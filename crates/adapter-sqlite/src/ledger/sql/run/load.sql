-- The open run of a scope: one that failed is open until it is reopened.
SELECT
    id, scope, procedure, key, epoch, version, phase, state, failure, attempts, code, text,
    due_at, token, token_version, delivered
FROM run
WHERE scope = :scope AND procedure = :procedure AND state IN ('active', 'failed')
