-- A step is taken, in this transaction.
UPDATE truekeep_ledger.ledger SET version = $1::int8::int4
