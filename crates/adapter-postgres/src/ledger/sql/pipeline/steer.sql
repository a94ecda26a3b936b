-- What an operator decided who was seen, in this transaction, to be the first to do so.
UPDATE truekeep_ledger.pipeline SET state = $2, revision = revision + 1
WHERE name = $1
