DELETE FROM {mirror} WHERE _key = ?1
