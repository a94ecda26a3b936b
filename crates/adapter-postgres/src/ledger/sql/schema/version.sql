-- The last step that was taken.
SELECT version FROM truekeep_ledger.ledger
