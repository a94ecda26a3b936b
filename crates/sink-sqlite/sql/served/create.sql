-- Which generation has the plain name, and by which swap; without a row, the first.
CREATE TABLE IF NOT EXISTS {served} (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  generation INTEGER NOT NULL,
  swap INTEGER NOT NULL
)
