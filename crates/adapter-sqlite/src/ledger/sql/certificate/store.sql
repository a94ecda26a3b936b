-- A judgement, made in this transaction.
UPDATE certificate SET
    state = :state,
    code = :code,
    moment = :moment,
    rules = :rules,
    parked = :parked,
    unsettled = :unsettled,
    changed_at = :changed_at
WHERE scope = :scope
