-- Tables whose name begins with ?1: names ignore ASCII case, and LIKE would take some characters
-- for patterns.
SELECT substr(name, length(?1) + 1) FROM sqlite_schema
WHERE type = 'table' AND lower(substr(name, 1, length(?1))) = lower(?1)
