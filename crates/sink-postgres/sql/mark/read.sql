SELECT seen.generation, seen.swap, m.generation IS NOT NULL,
       m.ledger, m.pipeline, m.rules, m.fence, m.number, m.holds_records, m.removed
FROM (SELECT) AS one
LEFT JOIN {marks} AS m ON m.generation = $1
LEFT JOIN (
  SELECT generation, swap FROM {marks} WHERE swap IS NOT NULL ORDER BY swap DESC LIMIT 1
) AS seen ON true
