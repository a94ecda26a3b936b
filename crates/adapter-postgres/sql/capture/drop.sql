-- What all feeds share goes with the last of them. What else is in the schema stays, and so the schema with it.
DROP TABLE IF EXISTS truekeep.capture;
DROP TABLE IF EXISTS truekeep.consumer;
DROP FUNCTION IF EXISTS truekeep.token();
DROP FUNCTION IF EXISTS truekeep.ready(text, interval);
DROP FUNCTION IF EXISTS truekeep.coverage(text, text);
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_depend WHERE refclassid = 'pg_catalog.pg_namespace'::regclass
                   AND refobjid = to_regnamespace('truekeep')) THEN
    DROP SCHEMA IF EXISTS truekeep;
  END IF;
END
$$;
