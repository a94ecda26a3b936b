-- Whoever may write was decided before: another owner than before comes after a headstone.
INSERT INTO {mark} (id, ledger, pipeline, rules, fence, number, holds_records, removed)
VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (id) DO UPDATE
SET ledger = excluded.ledger, pipeline = excluded.pipeline, rules = excluded.rules,
    fence = excluded.fence, number = excluded.number, holds_records = excluded.holds_records,
    removed = excluded.removed
