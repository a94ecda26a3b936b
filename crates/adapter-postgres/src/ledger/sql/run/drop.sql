-- The runs of a pipeline that is gone.
DELETE FROM truekeep_ledger.run WHERE pipeline = $1
