-- All consumers of a feed.
DELETE FROM truekeep.consumer WHERE feed = $1
