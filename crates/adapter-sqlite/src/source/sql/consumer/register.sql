-- What may be stored is decided before, in the same transaction.
INSERT INTO truekeep_consumer (feed, ledger, pipeline, counter, cursor) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (feed, ledger, pipeline) DO UPDATE
SET counter = excluded.counter, cursor = excluded.cursor
