-- The ledger has one row.
SELECT id FROM truekeep_ledger.ledger
