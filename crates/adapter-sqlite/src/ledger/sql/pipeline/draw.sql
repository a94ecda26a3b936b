-- The next fence of a pipeline. No row: the pipeline is not known.
UPDATE pipeline SET fence = fence + 1
WHERE name = :pipeline
RETURNING fence
