SELECT rules, version FROM {tombstones} WHERE key = ?1
