DELETE FROM truekeep_consumer WHERE feed = ?1
