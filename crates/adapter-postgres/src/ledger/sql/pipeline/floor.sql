-- Where the feeds of removed lives had come to.
SELECT newest FROM truekeep_ledger.pipeline WHERE name = $1
