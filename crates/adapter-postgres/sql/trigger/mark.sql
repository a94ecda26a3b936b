INSERT INTO {mark} (watch, key)
SELECT {watch}, q.key FROM (SELECT DISTINCT ({key}) COLLATE "C" AS key FROM {rows} AS t) AS q WHERE q.key IS NOT NULL
