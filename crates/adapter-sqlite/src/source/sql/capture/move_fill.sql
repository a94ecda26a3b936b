UPDATE truekeep_capture SET stage = ?2, place = ?3, filled = ?4 WHERE feed = ?1
