UPDATE truekeep_capture
SET generation = generation + 1, stage = 'rows', place = NULL, filled = 0, filling = ?2, total = ?3
WHERE feed = ?1
