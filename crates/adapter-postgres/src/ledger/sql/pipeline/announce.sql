-- A new life of a name gets the drawn incarnation; a known one keeps its own. Rules and fences go
-- on from where they were.
INSERT INTO truekeep_ledger.pipeline AS p
    (name, incarnation, state, revision, rules, fence, purge, quiet_at, newest)
VALUES ($1, $2, 'working', 0, $3 + 1, 0, false, NULL, 0)
ON CONFLICT (name) DO UPDATE SET
    incarnation = excluded.incarnation,
    state = CASE WHEN p.state = 'removed' THEN 'working' ELSE p.state END,
    revision = CASE WHEN p.state = 'removed' THEN 0 ELSE p.revision END,
    rules = greatest(p.rules, $3) + 1
RETURNING rules AS number
