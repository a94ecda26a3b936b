-- One row for each generation; without a ledger it was never written. `swap` is the number of the swap
-- that let readers see it: they see the one with the greatest. `holds_records` says whether it held
-- any after the last batch, so that one that was emptied since is not taken for written; `removed`
-- that the pipeline was removed.
CREATE TABLE IF NOT EXISTS {marks} (
  generation bigint NOT NULL PRIMARY KEY,
  swap bigint,
  ledger text,
  pipeline text,
  rules bigint,
  fence bigint,
  number bigint,
  holds_records boolean NOT NULL DEFAULT false,
  removed boolean NOT NULL DEFAULT false
)
