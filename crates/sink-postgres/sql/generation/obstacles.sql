-- What depends on a table or on its rows' type and cannot be carried over to another one.
WITH own AS (
  SELECT c.oid, c.reltype, t.typarray
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_type AS t ON t.oid = c.reltype
  WHERE c.oid = $1::int8::oid
)
SELECT DISTINCT pg_describe_object(d.classid, d.objid, d.objsubid)
FROM own JOIN pg_catalog.pg_depend AS d ON d.deptype IN ('n', 'a') AND (
  d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = own.oid
  OR d.refclassid = 'pg_catalog.pg_type'::regclass AND d.refobjid IN (own.reltype, own.typarray))
LEFT JOIN pg_catalog.pg_constraint AS k
  ON d.classid = 'pg_catalog.pg_constraint'::regclass AND k.oid = d.objid
LEFT JOIN pg_catalog.pg_trigger AS g ON d.classid = 'pg_catalog.pg_trigger'::regclass AND g.oid = d.objid
LEFT JOIN pg_catalog.pg_class AS c ON d.classid = 'pg_catalog.pg_class'::regclass AND c.oid = d.objid
LEFT JOIN pg_catalog.pg_rewrite AS r ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND r.oid = d.objid
LEFT JOIN pg_catalog.pg_class AS v ON v.oid = r.ev_class
-- Constraints, triggers and indexes of its own, defaults, statistics, and views of ours are carried.
WHERE k.conrelid IS DISTINCT FROM own.oid
  AND g.tgrelid IS DISTINCT FROM own.oid
  AND c.relkind IS DISTINCT FROM 'i'
  AND d.classid NOT IN ('pg_catalog.pg_attrdef'::regclass, 'pg_catalog.pg_statistic_ext'::regclass)
  AND NOT coalesce(v.relkind = 'v' AND pg_has_role(v.relowner, 'USAGE'), false)
ORDER BY 1
