-- A judgement, made in this transaction.
UPDATE truekeep_ledger.certificate SET
    state = $2,
    code = $3,
    moment = $4,
    rules = $5,
    parked = $6,
    unsettled = $7,
    changed_at = $8
WHERE scope = $1
