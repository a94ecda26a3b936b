-- A renewal holds leases and no pipeline: whoever judges by a lease holds it as well, before the clock
-- is read. All in one order, so that nobody waits for somebody who waits.
SELECT FROM truekeep_ledger.lease
WHERE pipeline = $1 AND ($2::text IS NULL OR scope = $2)
ORDER BY scope
FOR NO KEY UPDATE
