-- A page after a key in byte order. :parked is NULL for all, else whether parked ones are wanted.
-- The first page has no :after; a comparison would leave out the empty key.
SELECT key, version, kind, state, attempts, due_at, code, reason, changed_at, lease
FROM item
WHERE scope = :scope
    AND (:after IS NULL OR key > :after)
    AND (:parked IS NULL OR (state = 'parked') = :parked)
ORDER BY key
LIMIT :limit
