-- The ledger has one row.
SELECT id FROM ledger WHERE one = 1
