-- Ends a run that was seen, in this transaction, to be open. The version moves, so what its owner
-- still commits is refused.
UPDATE truekeep_ledger.run SET state = 'stopped', failure = $2, version = version + 1
WHERE id = $1
RETURNING
    id, scope, procedure, key, epoch, version, phase, state, failure, attempts, code, text,
    due_at, token, token_version, delivered
