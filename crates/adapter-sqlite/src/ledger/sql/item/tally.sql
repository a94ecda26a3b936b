-- A scope's items, counted in the transaction that uses the counts.
SELECT
    (SELECT count(*) FROM item WHERE scope = :scope AND state IN ('pending', 'leased', 'retry')) AS unsettled,
    (SELECT count(*) FROM item WHERE scope = :scope AND state = 'parked') AS parked
