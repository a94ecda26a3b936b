-- An update in place, not a REPLACE: triggers and references of others see one row change.
INSERT INTO {mirror} (_key, _rules, _version, {names}) VALUES (?, ?, ?, {places})
ON CONFLICT (_key) DO UPDATE
SET _rules = excluded._rules, _version = excluded._version, {assignments}
