-- The next fence of a pipeline that is worked on.
UPDATE truekeep_ledger.pipeline SET fence = fence + 1
WHERE name = $1 AND state = 'working'
RETURNING fence
