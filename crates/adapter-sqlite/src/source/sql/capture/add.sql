-- The first fill begins with the feed; the incarnation is drawn by the database that holds it.
INSERT INTO truekeep_capture
    (feed, relation, incarnation, key_form, schema_version, pruned, generation, filled, total, filling)
VALUES (?1, ?2, lower(hex(randomblob(16))), ?3, 0, 0, 0, 0, 0, '')
ON CONFLICT (feed) DO NOTHING
