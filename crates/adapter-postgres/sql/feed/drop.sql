-- Takes a feed away.
DROP FUNCTION IF EXISTS {look}(pg_snapshot);
DROP TABLE IF EXISTS {feed};
DROP TABLE IF EXISTS {mark};
DROP SEQUENCE IF EXISTS {version};
