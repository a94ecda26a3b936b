INSERT INTO {mark} (id, ledger, pipeline, rules, fence, number, holds_records)
VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)
ON CONFLICT (id) DO UPDATE
SET rules = excluded.rules, fence = excluded.fence, number = excluded.number,
    holds_records = excluded.holds_records
