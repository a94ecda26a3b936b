-- Rows and tombstones, the newest number that was given, and who reads.
SELECT count(*), count(*) FILTER (WHERE deleted),
  (SELECT last_value FROM {version}),
  (SELECT count(*) FROM truekeep.consumer WHERE feed = $1)
FROM {feed}
