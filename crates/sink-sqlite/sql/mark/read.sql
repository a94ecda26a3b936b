SELECT ledger, pipeline, rules, fence, number, holds_records, removed FROM {mark} WHERE id = 1
