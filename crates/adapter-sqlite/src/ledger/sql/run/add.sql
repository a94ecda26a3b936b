-- A run works for the epoch after those of the scope's earlier runs.
INSERT INTO run
    (id, scope, pipeline, procedure, key, epoch, version, phase, state, attempts, text, delivered)
VALUES
    (:id, :scope, :pipeline, :procedure, :key,
    (SELECT coalesce(max(epoch), 0) + 1 FROM run WHERE scope = :scope),
    0, :phase, 'active', 0, '', 0)
RETURNING
    id, scope, procedure, key, epoch, version, phase, state, failure, attempts, code, text,
    due_at, token, token_version, delivered
