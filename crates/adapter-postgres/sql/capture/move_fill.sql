-- The fill has come this far.
UPDATE truekeep.capture SET place = $2, filled = filled + $3, sweeping = $4 WHERE feed = $1
