-- A run by its id, whether it goes on or has ended.
SELECT
    id, scope, procedure, key, epoch, version, phase, state, failure, attempts, code, text,
    due_at, token, token_version, delivered
FROM truekeep_ledger.run
WHERE id = $1 AND scope = $2
