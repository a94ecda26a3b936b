-- `records` counts the live records, so that an emptied mirror is not taken for a written one.
CREATE TABLE {mark} (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  ledger TEXT NOT NULL,
  pipeline TEXT NOT NULL,
  rules INTEGER NOT NULL,
  fence INTEGER NOT NULL,
  number INTEGER NOT NULL,
  records INTEGER NOT NULL
)
