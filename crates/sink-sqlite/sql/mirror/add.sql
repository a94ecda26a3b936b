-- Changes nothing if the key is there.
INSERT INTO {mirror} (_key, _rules, _version, {names}) VALUES (?, ?, ?, {places})
ON CONFLICT (_key) DO NOTHING
