SELECT m._key, m._rules, m._version FROM {mirror} AS m
WHERE m._key > $1 OR $1 IS NULL
ORDER BY m._key LIMIT $2
