-- A new life of a name gets the drawn incarnation; a known one keeps its own. Rules and fences go
-- on from where they were.
INSERT INTO pipeline
    (name, incarnation, state, revision, rules, fence, purge, quiet_at, newest)
VALUES (:pipeline, :incarnation, 'working', 0, :above + 1, 0, 0, NULL, 0)
ON CONFLICT (name) DO UPDATE SET
    incarnation = excluded.incarnation,
    state = iif(state = 'removed', 'working', state),
    revision = iif(state = 'removed', 0, revision),
    rules = max(rules, :above) + 1
RETURNING rules AS number
