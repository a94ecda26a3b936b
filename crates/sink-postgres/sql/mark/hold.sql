-- Whoever writes a generation holds its mark to the end, and a swap waits.
SELECT (SELECT generation FROM {marks} WHERE swap IS NOT NULL ORDER BY swap DESC LIMIT 1),
       (SELECT swap FROM {marks} WHERE swap IS NOT NULL ORDER BY swap DESC LIMIT 1), true,
       m.ledger, m.pipeline, m.rules, m.fence, m.number, m.holds_records, m.removed
FROM {marks} AS m WHERE m.generation = $1
FOR UPDATE
