-- A batch of items, in order. One of the same key is replaced unless it has a greater version;
-- so is one that is being tried: its claim then finds a newer version, or has just failed. Of those
-- of one key in the batch only the one that would be left is written: a row can change but once.
INSERT INTO truekeep_ledger.item AS i
    (scope, key, version, kind, state, attempts, due_at, code, reason, changed_at, lease)
SELECT DISTINCT ON (n.key)
    $1, n.key, n.version, n.kind, n.state, n.attempts, n.due_at, n.code, n.reason, $2, NULL
FROM unnest(
    $3::bytea[], $4::int8[], $5::text[], $6::text[], $7::int8[], $8::int8[], $9::text[], $10::text[]
) WITH ORDINALITY
    AS n (key, version, kind, state, attempts, due_at, code, reason, place)
ORDER BY n.key, n.version DESC, n.place DESC
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
WHERE excluded.version >= i.version
