-- A new pipeline gets the drawn incarnation; a known one keeps its own and its fences.
INSERT INTO pipeline (name, incarnation, rules, fence)
VALUES (:pipeline, :incarnation, :number, 0)
ON CONFLICT (name) DO UPDATE SET rules = excluded.rules
