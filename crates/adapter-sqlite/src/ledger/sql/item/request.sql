-- An operator's wish for a record that has no item, or an older one. No row is written if the
-- ledger does not know the scope.
INSERT INTO item
    (scope, key, version, kind, state, attempts, due_at, code, reason, changed_at, lease)
SELECT scope, :key, :version, :kind, 'pending', 0, :now, :code, '', :now, NULL
FROM certificate
WHERE scope = :scope
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
