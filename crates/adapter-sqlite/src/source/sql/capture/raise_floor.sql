UPDATE truekeep_capture SET pruned = max(pruned, ?2) WHERE feed = ?1
