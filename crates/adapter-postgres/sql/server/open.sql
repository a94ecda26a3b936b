-- Transactions that are open for longer than $1 seconds, the oldest first; nobody but their own database can be read, but
-- their numbers hold back the removal of dead rows everywhere. Who may not see others' is told less.
SELECT who, age FROM (
  SELECT concat('process ', a.pid, ' (', a.application_name, ') of ', a.usename, ' in ', a.datname) AS who,
         extract(epoch FROM clock_timestamp() - a.xact_start)::int8 AS age
  FROM pg_catalog.pg_stat_activity AS a
  WHERE a.pid <> pg_backend_pid() AND (a.backend_xid IS NOT NULL OR a.backend_xmin IS NOT NULL)
  UNION ALL
  SELECT concat('prepared ', quote_literal(p.gid), ' of ', p.owner, ' in ', p.database),
         extract(epoch FROM clock_timestamp() - p.prepared)::int8
  FROM pg_catalog.pg_prepared_xacts AS p
) AS open WHERE age >= $1 ORDER BY age DESC LIMIT 5
