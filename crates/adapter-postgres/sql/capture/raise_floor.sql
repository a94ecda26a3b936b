-- What was pruned is told for ever.
UPDATE truekeep.capture SET pruned = $2::text::pg_snapshot
WHERE feed = $1 AND pg_snapshot_xmax(pruned) <= pg_snapshot_xmax($2::text::pg_snapshot)
