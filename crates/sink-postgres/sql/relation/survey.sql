-- Relations of a schema by their names, in the order of the names; with the schema itself.
SELECT n.oid IS NOT NULL,
       coalesce(has_schema_privilege(n.oid, 'CREATE'), false),
       c.oid::int8, c.relkind::text, c.relpersistence = 'u',
       coalesce(row_security_active(c.oid), false),
       has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')
         AND has_table_privilege(c.oid, 'UPDATE') AND has_table_privilege(c.oid, 'DELETE'),
       current_user::text
FROM unnest($2::text[]) WITH ORDINALITY AS wanted (name, place)
LEFT JOIN pg_catalog.pg_namespace AS n ON n.nspname = $1
LEFT JOIN pg_catalog.pg_class AS c ON c.relnamespace = n.oid AND c.relname = wanted.name
ORDER BY wanted.place
