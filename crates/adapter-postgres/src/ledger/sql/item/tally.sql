-- A scope's items, as the triggers have counted them in this transaction.
SELECT coalesce(max(unsettled), 0) AS unsettled, coalesce(max(parked), 0) AS parked
FROM truekeep_ledger.tally
WHERE scope = $1
