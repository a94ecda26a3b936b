-- Columns that others added: generated ones, the only kind that is let be.
SELECT name FROM pragma_table_xinfo(?1) WHERE hidden <> 0 ORDER BY cid
