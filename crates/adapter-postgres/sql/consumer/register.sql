-- An acknowledgement. Neither number goes back.
INSERT INTO truekeep.consumer AS r (feed, ledger, pipeline, counter, passed, start, drawn)
SELECT $1, $2, $3, $4, $5::text::pg_snapshot, ({start}), last_value FROM {version}
ON CONFLICT (feed, ledger, pipeline) DO UPDATE SET
  counter = greatest(r.counter, excluded.counter),
  passed = CASE WHEN pg_snapshot_xmax(r.passed) > pg_snapshot_xmax(excluded.passed)
                  OR EXISTS (SELECT FROM pg_snapshot_xip(excluded.passed) AS x WHERE pg_visible_in_snapshot(x, r.passed))
           THEN r.passed ELSE excluded.passed END,
  drawn = greatest(r.drawn, excluded.drawn)
