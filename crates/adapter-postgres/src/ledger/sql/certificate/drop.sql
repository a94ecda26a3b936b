-- The scopes of a pipeline that is gone; its runs and items went before.
DELETE FROM truekeep_ledger.certificate WHERE pipeline = $1
