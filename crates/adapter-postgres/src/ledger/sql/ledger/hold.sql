-- Of those who give a name its first row one goes first: there is no row of the name to be held yet.
SELECT FROM truekeep_ledger.ledger FOR NO KEY UPDATE
