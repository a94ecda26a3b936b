-- The next fence of a pipeline that is worked on.
UPDATE pipeline SET fence = fence + 1
WHERE name = :pipeline AND state = 'working'
RETURNING fence
