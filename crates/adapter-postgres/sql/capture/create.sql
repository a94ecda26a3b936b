-- What all feeds share.
CREATE SCHEMA IF NOT EXISTS truekeep;
CREATE TABLE IF NOT EXISTS truekeep.capture (
  feed text PRIMARY KEY,
  relation text NOT NULL,
  incarnation text NOT NULL,
  -- The cluster and the database that this life began in: the transactions that it numbers are theirs.
  born text NOT NULL,
  key_form text NOT NULL,
  -- The signature that the last full pass over the table left behind.
  trusted text,
  -- Set while rows are recorded: the signature that this began under.
  filling text,
  -- Whether no row was ever recorded, so that those in the feed are as new as any.
  first boolean NOT NULL DEFAULT true,
  sweeping boolean NOT NULL DEFAULT false,
  place text,
  filled bigint NOT NULL DEFAULT 0,
  total bigint NOT NULL DEFAULT 0,
  -- Tombstones that were visible in this may be gone.
  pruned pg_snapshot NOT NULL DEFAULT '3:3:'
);
CREATE TABLE IF NOT EXISTS truekeep.consumer (
  feed text NOT NULL,
  ledger text NOT NULL,
  pipeline text NOT NULL,
  counter bigint NOT NULL,
  passed pg_snapshot NOT NULL,
  -- The start of the server under which a page was last handed out. Written before that page, so that a server without
  -- it, or without a later one, never handed out what came after.
  start text NOT NULL,
  -- The newest number that was drawn when this was written: what a restored source is numbered above.
  drawn bigint NOT NULL,
  PRIMARY KEY (feed, ledger, pipeline)
);
-- What a client says it has written and seen, to be asked for in its own transaction: its snapshot with itself.
-- What began since and has a smaller number counts as running.
CREATE OR REPLACE FUNCTION truekeep.token() RETURNS text LANGUAGE sql AS $$
  SELECT pg_catalog.concat(coalesce(min(x.id), top.id), ':', top.id, ':', pg_catalog.string_agg(x.id::text, ',' ORDER BY x.id))
  FROM (
    SELECT s, pg_catalog.pg_snapshot_xmax(s)::text::int8 AS next,
           greatest(pg_catalog.pg_snapshot_xmax(s)::text::int8, me::text::int8 + 1) AS id, me::text::int8 AS me
    FROM (SELECT pg_catalog.pg_current_snapshot() AS s, pg_catalog.pg_current_xact_id() AS me) AS now
  ) AS top
  LEFT JOIN LATERAL (
    SELECT pg_catalog.pg_snapshot_xip(top.s)::text::int8 AS id
    UNION ALL
    SELECT pg_catalog.generate_series(top.next, top.me - 1)
  ) AS x ON x.id <> top.me
  GROUP BY top.id
$$;
-- Whether a sink is complete, by the ledger in this database; an error if it is elsewhere.
CREATE OR REPLACE FUNCTION truekeep.ready(pipeline text, age_max interval DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN truekeep_ledger.ready($1, $2); END $$;
CREATE OR REPLACE FUNCTION truekeep.coverage(pipeline text, token text DEFAULT NULL)
RETURNS TABLE (
  complete boolean, state text, paused boolean, code text, moment text, rules int8, parked int8, age interval
)
LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN QUERY SELECT * FROM truekeep_ledger.coverage($1, $2); END $$;
