-- Of those who write of a name without a row one goes first, so that what is seen of it, nothing,
-- stays so: there is no row of the name to be held yet.
SELECT FROM truekeep_ledger.ledger FOR NO KEY UPDATE
