-- A repeat that comes late moves nothing back.
INSERT INTO truekeep_consumer (feed, ledger, pipeline, counter, cursor) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (feed, ledger, pipeline) DO UPDATE
SET counter = max(counter, excluded.counter), cursor = max(cursor, excluded.cursor)
