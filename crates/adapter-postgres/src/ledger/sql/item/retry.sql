-- An operator's wish: the item as it is, to be tried now, with no attempt counted.
UPDATE truekeep_ledger.item SET state = 'pending', attempts = 0, due_at = $3, changed_at = $3, lease = NULL
WHERE scope = $1 AND key = $2
