-- Counts the items anew and judges nothing: the moment still holds.
UPDATE truekeep_ledger.certificate SET
    parked = coalesce((SELECT parked FROM truekeep_ledger.tally WHERE scope = $1), 0),
    unsettled = coalesce((SELECT unsettled FROM truekeep_ledger.tally WHERE scope = $1), 0),
    changed_at = $2
WHERE scope = $1
