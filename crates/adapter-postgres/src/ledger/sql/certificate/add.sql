-- A scope that is new was never worked on; a known one keeps its certificate.
INSERT INTO truekeep_ledger.certificate
    (scope, pipeline, state, code, moment, rules, parked, unsettled, changed_at)
VALUES ($1, $2, 'never', NULL, NULL, $3, 0, 0, $4)
ON CONFLICT (scope) DO NOTHING
