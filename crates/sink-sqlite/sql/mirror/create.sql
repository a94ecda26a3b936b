-- The ranks stand before the document, so that reading them never walks through a long one. A
-- document's columns have no type: no value is converted on its way in.
CREATE TABLE {mirror} (
  _key TEXT COLLATE BINARY NOT NULL PRIMARY KEY CHECK (typeof(_key) = 'text'),
  _rules INTEGER NOT NULL,
  _version INTEGER NOT NULL,
  {definitions}
)
