-- Whose file this is, the schema's version, and whether the file holds anything (an empty one may
-- become a ledger), all from one snapshot.
SELECT
    (SELECT application_id FROM pragma_application_id) AS application,
    (SELECT user_version FROM pragma_user_version) AS version,
    (SELECT count(*) FROM sqlite_schema) AS tables
