-- A page after a key in byte order. The first page has no :after; a comparison would leave out the
-- empty key.
SELECT key, version, kind, state, attempts, due_at, code, reason, changed_at, lease
FROM item
WHERE scope = :scope
    AND (:after IS NULL OR key > :after)
    AND (:filter IS NULL OR :filter = CASE
        WHEN state <> 'parked' THEN 'unsettled'
        WHEN code = 'DISCARDED' THEN 'discarded'
        ELSE 'parked'
    END)
ORDER BY key
LIMIT :limit
