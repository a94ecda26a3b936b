-- NULL without a consumer: then nothing was passed.
SELECT min(cursor) FROM truekeep_consumer WHERE feed = ?1
