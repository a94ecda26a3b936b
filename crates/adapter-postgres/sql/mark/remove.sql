-- Marks that are in the feed. Waits for whoever removes them too, and removes them if he gives up.
DELETE FROM {mark} WHERE id = ANY ($1::int8[])
