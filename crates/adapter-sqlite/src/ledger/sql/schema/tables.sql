-- Whether the file holds anything: an empty one may become a ledger.
SELECT count(*) AS tables FROM sqlite_schema
