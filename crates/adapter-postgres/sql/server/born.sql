-- Which database this is, of which cluster.
SELECT concat_ws('.', (SELECT s.system_identifier FROM pg_control_system() AS s), d.oid)
FROM pg_catalog.pg_database AS d WHERE d.datname = current_database()
