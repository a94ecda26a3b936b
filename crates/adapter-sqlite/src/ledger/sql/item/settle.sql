-- The sink holds these versions, so items at or below them are done. CROSS JOIN: the list drives,
-- the index finds each key.
DELETE FROM item
WHERE id IN (
    SELECT i.id
    FROM json_each(:done) AS d
    CROSS JOIN item AS i ON i.scope = :scope AND i.key = d.value ->> 0
        AND i.version <= d.value ->> 1
)
