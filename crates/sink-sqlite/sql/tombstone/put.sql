INSERT INTO {tombstones} (key, rules, version) VALUES (?1, ?2, ?3)
ON CONFLICT (key) DO UPDATE SET rules = excluded.rules, version = excluded.version
