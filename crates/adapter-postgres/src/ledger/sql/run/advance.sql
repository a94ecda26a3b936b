-- A checkpoint. The guard was compared in this transaction.
UPDATE truekeep_ledger.run SET
    version = version + 1,
    phase = $2,
    state = $3,
    failure = $4,
    attempts = $5,
    code = $6,
    text = $7,
    due_at = $8,
    token = $9,
    token_version = version + 1,
    delivered = delivered + $10
WHERE id = $1
RETURNING version
