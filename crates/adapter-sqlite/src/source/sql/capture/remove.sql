DELETE FROM truekeep_capture WHERE feed = ?1
