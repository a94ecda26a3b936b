-- Whether the schema is there, whether it is a ledger's, and whether it holds anything (an empty one
-- may become a ledger).
SELECT
    EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'truekeep_ledger') AS there,
    pg_catalog.to_regclass('truekeep_ledger.ledger') IS NOT NULL AS ours,
    EXISTS (
        SELECT FROM pg_catalog.pg_class AS c
        JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname = 'truekeep_ledger'
    ) AS filled
