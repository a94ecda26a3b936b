-- What others made on the table: their indexes and triggers. What SQLite made by itself has no SQL.
SELECT type, name, sql FROM sqlite_schema
WHERE type IN ('index', 'trigger') AND lower(tbl_name) = lower(?1) AND sql IS NOT NULL
ORDER BY type, name
