-- All rows are to be recorded, under the signature that is there now. Only while none is, those that the triggers write
-- meanwhile are left alone: any later fill follows a gap, in which each row may have changed.
UPDATE truekeep.capture
SET first = NOT EXISTS (SELECT FROM {feed}),
    filling = $2, sweeping = false, place = NULL, filled = 0, total = $3
WHERE feed = $1
