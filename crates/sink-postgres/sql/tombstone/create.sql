CREATE TABLE IF NOT EXISTS {tombstones} (
  generation bigint NOT NULL,
  key text COLLATE "C" NOT NULL,
  rules bigint NOT NULL,
  version bigint NOT NULL,
  PRIMARY KEY (generation, key)
)
