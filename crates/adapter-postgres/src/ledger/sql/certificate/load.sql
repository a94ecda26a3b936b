-- What readers may rely on.
SELECT state, code, moment, rules, parked, unsettled, changed_at
FROM truekeep_ledger.certificate
WHERE scope = $1
