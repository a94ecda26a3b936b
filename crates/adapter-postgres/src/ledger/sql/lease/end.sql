-- Nobody holds anything of the pipeline any more.
DELETE FROM truekeep_ledger.lease WHERE pipeline = $1
