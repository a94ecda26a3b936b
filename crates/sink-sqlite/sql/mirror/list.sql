-- The collation is BINARY, so the order is that of the keys' bytes. There is no limit: the reader
-- passes over keys that it cannot name, and stops when it has enough.
SELECT _key, _rules, _version FROM {mirror} WHERE _key >= ?1 ORDER BY _key
