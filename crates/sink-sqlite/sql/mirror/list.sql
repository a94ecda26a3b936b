-- The collation is BINARY, so the order is that of the keys' bytes.
SELECT _key, _rules, _version FROM {mirror} WHERE _key >= ?1 ORDER BY _key LIMIT ?2
