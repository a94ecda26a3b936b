-- The rules of a pipeline that is gone. The last number stays with the name.
DELETE FROM truekeep_ledger.rules WHERE pipeline = $1
