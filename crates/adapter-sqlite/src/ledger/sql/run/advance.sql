-- A checkpoint. The guard was compared in this transaction.
UPDATE run SET
    version = version + 1,
    phase = :phase,
    state = :state,
    failure = :failure,
    attempts = :attempts,
    code = :code,
    text = :text,
    due_at = :due_at,
    token = :token,
    token_version = version + 1,
    delivered = delivered + :delivered
WHERE id = :run
RETURNING version
