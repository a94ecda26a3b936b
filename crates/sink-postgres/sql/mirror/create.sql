-- The order of keys is that of their bytes, whatever the database's collation. The ranks stand before
-- the document, so that reading them never walks through a long one.
CREATE TABLE {mirror} (
  _key text COLLATE "C" NOT NULL PRIMARY KEY,
  _rules bigint NOT NULL,
  _version bigint NOT NULL,
  {definitions}
)
