-- An operator gives the item up: it stays parked, and says so.
UPDATE truekeep_ledger.item SET code = $3, reason = $4, changed_at = $5
WHERE scope = $1 AND key = $2
