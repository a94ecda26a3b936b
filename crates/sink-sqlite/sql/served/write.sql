INSERT INTO {served} (id, generation, swap) VALUES (1, ?1, ?2)
ON CONFLICT (id) DO UPDATE SET generation = excluded.generation, swap = excluded.swap
