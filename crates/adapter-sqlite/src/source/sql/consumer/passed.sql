-- NULL without a consumer: then nothing was passed.
SELECT min(cursor), coalesce(sum(cursor), 0) FROM truekeep_consumer WHERE feed = ?1
