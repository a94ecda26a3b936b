-- The newest first; what happened in the same millisecond in the order of its coming.
SELECT at, code, text
FROM truekeep_ledger.event
WHERE scope = $1
ORDER BY at DESC, id DESC
LIMIT $2
