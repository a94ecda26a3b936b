-- Live keys in the order of their bytes. Those that are not wanted are looked at too, so that a page is bounded.
SELECT f.key, f.version, NOT f.deleted{wanted}
FROM (SELECT key, version, deleted FROM {feed} WHERE $1::text IS NULL OR key > $1 ORDER BY key LIMIT $2) AS f
ORDER BY f.key
