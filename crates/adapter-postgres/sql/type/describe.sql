-- Types by number; a domain with the type it is made of, at the bottom.
WITH RECURSIVE base (asked, oid) AS (
  SELECT t, t::oid FROM unnest($1::int8[]) AS t
  UNION
  SELECT base.asked, y.typbasetype
  FROM base JOIN pg_catalog.pg_type y ON y.oid = base.oid WHERE y.typtype = 'd'
)
SELECT base.asked, format_type(base.asked::oid, NULL), n.nspname::text, y.typname::text,
       y.typtype::text, y.typcategory::text
FROM base JOIN pg_catalog.pg_type y ON y.oid = base.oid AND y.typtype <> 'd'
JOIN pg_catalog.pg_namespace n ON n.oid = y.typnamespace
