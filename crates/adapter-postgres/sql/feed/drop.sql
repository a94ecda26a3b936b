-- Takes a feed away.
DROP TABLE IF EXISTS {feed};
DROP TABLE IF EXISTS {mark};
DROP SEQUENCE IF EXISTS {version};
