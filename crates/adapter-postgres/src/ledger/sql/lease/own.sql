-- What a renewal changes, held in the order of all who hold leases.
SELECT FROM truekeep_ledger.lease
WHERE holder = $1 AND token = ANY ($2::text[])
ORDER BY scope
FOR NO KEY UPDATE
