-- Every row is recorded: what comes is trusted under this signature.
UPDATE truekeep.capture
SET trusted = $2, filling = NULL, first = false, sweeping = false, place = NULL
WHERE feed = $1
