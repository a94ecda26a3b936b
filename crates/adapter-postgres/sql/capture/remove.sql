-- Ends a feed's life.
DELETE FROM truekeep.capture WHERE feed = $1
