-- An operator's wish for a record that has no item, or an older one. No row is written if the
-- ledger does not know the scope.
INSERT INTO truekeep_ledger.item
    (scope, key, version, kind, state, attempts, due_at, code, reason, changed_at, lease)
SELECT scope, $2, $3, $4, 'pending', 0, $6, $5, '', $6, NULL
FROM truekeep_ledger.certificate
WHERE scope = $1
ON CONFLICT (scope, key) DO UPDATE SET
    version = excluded.version,
    kind = excluded.kind,
    state = excluded.state,
    attempts = excluded.attempts,
    due_at = excluded.due_at,
    code = excluded.code,
    reason = excluded.reason,
    changed_at = excluded.changed_at,
    lease = NULL
