-- What is held of some keys, live or remembered; nothing is said of those of which nothing is.
SELECT sent.place, m._key IS NOT NULL, m._rules, m._version, t.rules, t.version
FROM unnest($2::text[]) WITH ORDINALITY AS sent (key, place)
LEFT JOIN {mirror} AS m ON m._key = sent.key
LEFT JOIN {tombstones} AS t ON t.generation = $1 AND t.key = sent.key
WHERE m._key IS NOT NULL OR t.key IS NOT NULL
