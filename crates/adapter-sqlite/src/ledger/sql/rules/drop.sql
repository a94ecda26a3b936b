-- The rules of a pipeline that is gone. The last number stays with the name.
DELETE FROM rules WHERE pipeline = :pipeline
