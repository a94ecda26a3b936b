-- Some of what is too old: a clean-up of any size must not hold up this write.
DELETE FROM event
WHERE id IN (
    SELECT id FROM event
    WHERE scope = :scope AND at < :before
    ORDER BY at, id
    LIMIT :limit
)
