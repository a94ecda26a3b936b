-- A page after a key in byte order. The first page has no key to be after; a comparison would leave
-- out the empty key.
SELECT key, version, kind, state, attempts, due_at, code, reason, changed_at, lease
FROM truekeep_ledger.item
WHERE scope = $1
    AND ($2::bytea IS NULL OR key > $2)
    AND ($3::text IS NULL OR $3 = CASE
        WHEN state <> 'parked' THEN 'unsettled'
        WHEN code = 'DISCARDED' THEN 'discarded'
        ELSE 'parked'
    END)
ORDER BY key
LIMIT $4
