-- Notes that a consumer reads under this start of the server, if it is still the one.
UPDATE truekeep.consumer SET start = $4
WHERE feed = $1 AND ledger = $2 AND pipeline = $3 AND $4 = ({start})
RETURNING true
