-- Some marks, the oldest first, and the snapshot they are visible in, also if there is none.
SELECT pg_current_snapshot()::text, m.id, m.watch, m.key, m.place
FROM (SELECT) AS one
LEFT JOIN LATERAL (SELECT * FROM {mark} ORDER BY id LIMIT $1) AS m ON true
ORDER BY m.id
