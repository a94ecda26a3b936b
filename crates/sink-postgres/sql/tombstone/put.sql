INSERT INTO {tombstones} (generation, key, rules, version)
SELECT $1, sent.key, sent.rules, sent.version
FROM unnest($2::text[], $3::bigint[], $4::bigint[]) AS sent (key, rules, version)
ON CONFLICT (generation, key) DO UPDATE SET rules = excluded.rules, version = excluded.version
