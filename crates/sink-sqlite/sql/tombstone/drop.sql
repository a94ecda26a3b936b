DELETE FROM {tombstones} WHERE key = ?1
