-- The primary key refuses a number that was given before.
INSERT INTO truekeep_ledger.rules (pipeline, number, fingerprint, text, announced_at)
VALUES ($1, $2, $3, $4, $5)
