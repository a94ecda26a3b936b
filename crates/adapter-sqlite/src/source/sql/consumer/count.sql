SELECT count(*) FROM truekeep_consumer WHERE feed = ?1
