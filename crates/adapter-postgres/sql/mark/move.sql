-- A mark is expanded up to here.
UPDATE {mark} SET place = $2 WHERE id = $1
