-- What an operator decided who was seen, in this transaction, to be the first to do so.
UPDATE pipeline SET state = :state, revision = revision + 1
WHERE name = :pipeline
