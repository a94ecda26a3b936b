-- Whoever may write was decided before: another owner than before comes after a headstone.
UPDATE {marks}
SET ledger = $2, pipeline = $3, rules = $4, fence = $5, number = $6, holds_records = $7,
    removed = $8
WHERE generation = $1
