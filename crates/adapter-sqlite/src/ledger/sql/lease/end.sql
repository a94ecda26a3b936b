-- Nobody holds anything of the pipeline any more.
DELETE FROM lease WHERE pipeline = :pipeline
