DELETE FROM truekeep_consumer WHERE feed = ?1 AND ledger = ?2 AND pipeline = ?3
