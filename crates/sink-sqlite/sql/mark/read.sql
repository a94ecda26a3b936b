SELECT ledger, pipeline, rules, fence, number, holds_records FROM {mark} WHERE id = 1
