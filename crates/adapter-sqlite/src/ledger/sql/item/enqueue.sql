-- A batch of items, in order. One of the same key is replaced unless it has a greater version;
-- so is one that is being tried: its claim then finds a newer version, or has just failed.
INSERT INTO item
    (scope, key, version, kind, state, attempts, due_at, code, reason, changed_at, lease)
SELECT
    :scope, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
    value ->> 6, value ->> 7, :now, NULL
FROM json_each(:items)
WHERE true
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
WHERE excluded.version >= item.version
