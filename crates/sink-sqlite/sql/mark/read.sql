SELECT ledger, pipeline, rules, fence, number, records FROM {mark} WHERE id = 1
