-- A scope that is new was never worked on; a known one keeps its certificate.
INSERT INTO certificate
    (scope, pipeline, state, code, moment, rules, parked, unsettled, changed_at)
VALUES (:scope, :pipeline, 'never', NULL, NULL, :rules, 0, 0, :now)
ON CONFLICT (scope) DO NOTHING
