-- The scopes of a pipeline that is gone; its runs and items went before.
DELETE FROM certificate WHERE pipeline = :pipeline
