-- `holds_records` says whether the mirror held any after the last batch, so that one that was
-- emptied since is not taken for written; `removed` that the pipeline was removed.
CREATE TABLE {mark} (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  ledger TEXT NOT NULL,
  pipeline TEXT NOT NULL,
  rules INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  number INTEGER NOT NULL,
  holds_records INTEGER NOT NULL,
  removed INTEGER NOT NULL
)
