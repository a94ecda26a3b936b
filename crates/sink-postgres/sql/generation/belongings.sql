-- What others made on a table and can be made anew on another one: the statement that takes it from
-- this one, and the one that makes it, both by the table's name. Grants last but for views: what they
-- are granted on is whole then.
WITH own AS (
  SELECT c.oid, c.relowner, c.relacl, format('%I.%I', n.nspname, c.relname) AS name
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.oid = $1::int8::oid
), granted AS (
  SELECT own.name, '' AS columns, acl.* FROM own, aclexplode(own.relacl) AS acl
  WHERE acl.grantee <> own.relowner
  UNION ALL
  SELECT own.name, format(' (%I)', a.attname), acl.*
  FROM own JOIN pg_catalog.pg_attribute AS a ON a.attrelid = own.oid AND NOT a.attisdropped,
       aclexplode(a.attacl) AS acl
), grants AS (
  SELECT name, format('%s%s', privilege_type, columns) AS what, is_grantable,
         CASE WHEN grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END AS whom
  FROM granted
), found (place, name, take, make) AS (
  SELECT 1, k.conname::text, format('ALTER TABLE %s DROP CONSTRAINT %I', own.name, k.conname),
         format('ALTER TABLE %s ADD CONSTRAINT %I %s', own.name, k.conname, pg_get_constraintdef(k.oid))
  FROM own JOIN pg_catalog.pg_constraint AS k ON k.conrelid = own.oid
  WHERE k.contype IN ('c', 'f', 'u', 'x')
  UNION ALL
  SELECT 2, c.relname::text, format('DROP INDEX %I.%I', n.nspname, c.relname), pg_get_indexdef(c.oid)
  FROM own JOIN pg_catalog.pg_index AS i ON i.indrelid = own.oid
  JOIN pg_catalog.pg_class AS c ON c.oid = i.indexrelid
  JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
  WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_constraint AS k WHERE k.conindid = c.oid AND k.conrelid = own.oid)
  UNION ALL
  SELECT 3, t.tgname::text, format('DROP TRIGGER %I ON %s', t.tgname, own.name),
         pg_get_triggerdef(t.oid) || CASE t.tgenabled
           WHEN 'D' THEN format('; ALTER TABLE %s DISABLE TRIGGER %I', own.name, t.tgname)
           WHEN 'A' THEN format('; ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', own.name, t.tgname)
           WHEN 'R' THEN format('; ALTER TABLE %s ENABLE REPLICA TRIGGER %I', own.name, t.tgname)
           ELSE '' END
  FROM own JOIN pg_catalog.pg_trigger AS t ON t.tgrelid = own.oid AND NOT t.tgisinternal
  UNION ALL
  SELECT 4, s.stxname::text, format('DROP STATISTICS %I.%I', n.nspname, s.stxname),
         pg_get_statisticsobjdef(s.oid)
  FROM own JOIN pg_catalog.pg_statistic_ext AS s ON s.stxrelid = own.oid
  JOIN pg_catalog.pg_namespace AS n ON n.oid = s.stxnamespace
  UNION ALL
  SELECT 5, whom, format('REVOKE %s ON %s FROM %s', what, name, whom),
         format('GRANT %s ON %s TO %s%s', what, name, whom,
                CASE WHEN is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
  FROM grants
  UNION ALL
  -- A view is made anew over the table that has the name then; its own dependents see the same view.
  SELECT DISTINCT 6, v.relname::text, '',
         format('CREATE OR REPLACE VIEW %I.%I%s AS %s', n.nspname, v.relname,
                coalesce(format(' WITH (%s)', array_to_string(v.reloptions, ', ')), ''),
                pg_get_viewdef(v.oid))
  FROM own JOIN pg_catalog.pg_depend AS d
    ON d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = own.oid
   AND d.classid = 'pg_catalog.pg_rewrite'::regclass
  JOIN pg_catalog.pg_rewrite AS r ON r.oid = d.objid
  JOIN pg_catalog.pg_class AS v ON v.oid = r.ev_class AND v.relkind = 'v'
  JOIN pg_catalog.pg_namespace AS n ON n.oid = v.relnamespace
)
SELECT take, make FROM found ORDER BY place, name
