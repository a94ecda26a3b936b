-- One item.
SELECT key, version, kind, state, attempts, due_at, code, reason, changed_at, lease
FROM truekeep_ledger.item
WHERE scope = $1 AND key = $2
