-- What is there: the mirror's kind, and whether its companions are. Names ignore ASCII case.
SELECT
  (SELECT type FROM sqlite_schema WHERE type IN ('table', 'view') AND lower(name) = lower(?1)),
  EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND lower(name) = lower(?2)),
  EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND lower(name) = lower(?3))
