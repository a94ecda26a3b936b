-- Everybody who writes anything of a pipeline holds its row, so they take turns, and what the next
-- statement sees is what the one before left.
SELECT FROM truekeep_ledger.pipeline WHERE name = $1 FOR NO KEY UPDATE
