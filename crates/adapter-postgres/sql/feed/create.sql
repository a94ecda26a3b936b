-- One feed. Texts are compared by bytes.
CREATE TABLE {feed} (
  key text COLLATE "C" PRIMARY KEY,
  version bigint NOT NULL,
  -- The transaction that gave the version.
  xid xid8 NOT NULL,
  deleted boolean NOT NULL,
  -- The version of the row that was looked at: what changed past the triggers carries another one.
  row_xmin xid
);
CREATE INDEX {order} ON {feed} (xid, version);
CREATE INDEX {waste} ON {feed} (xid) WHERE deleted;
CREATE SEQUENCE {version} CACHE 1;
-- Marks of related tables: of a key, or of what rows refer to, which is expanded in pages.
CREATE TABLE {mark} (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  watch text,
  key text COLLATE "C" NOT NULL,
  place text
);
