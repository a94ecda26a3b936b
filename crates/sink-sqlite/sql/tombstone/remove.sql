DROP TABLE IF EXISTS {tombstones}
