-- What happened, for operators.
INSERT INTO truekeep_ledger.event (scope, at, code, text)
VALUES ($1, $2, $3, $4)
