-- The newest first; what happened in the same millisecond in the order of its coming.
SELECT at, code, text
FROM event
WHERE scope = :scope
ORDER BY at DESC, id DESC
LIMIT :limit
