-- A run works for the epoch after those of the scope's earlier runs.
INSERT INTO truekeep_ledger.run
    (id, scope, pipeline, procedure, key, epoch, version, phase, state, attempts, text, delivered)
VALUES
    ($1, $2, $3, $4, $5,
    (SELECT coalesce(max(epoch), 0) + 1 FROM truekeep_ledger.run WHERE scope = $2),
    0, $6, 'active', 0, '', 0)
RETURNING
    id, scope, procedure, key, epoch, version, phase, state, failure, attempts, code, text,
    due_at, token, token_version, delivered
