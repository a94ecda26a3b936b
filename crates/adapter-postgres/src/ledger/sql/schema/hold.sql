-- Of those who make or change a ledger one goes first. The number is our own: "tklg".
SELECT pg_catalog.pg_advisory_xact_lock(1953197159)
