-- A consumer that holds nothing back any more.
DELETE FROM truekeep.consumer WHERE feed = $1 AND ledger = $2 AND pipeline = $3
