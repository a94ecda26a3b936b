-- The runs of a pipeline that is gone.
DELETE FROM run WHERE pipeline = :pipeline
