-- What readers may rely on.
SELECT state, code, moment, rules, parked, unsettled, changed_at
FROM certificate
WHERE scope = :scope
