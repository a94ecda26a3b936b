-- One item.
SELECT key, version, kind, state, attempts, due_at, code, reason, changed_at, lease
FROM item
WHERE scope = :scope AND key = :key
