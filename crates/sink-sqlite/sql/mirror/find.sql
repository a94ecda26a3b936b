SELECT _rules, _version FROM {mirror} WHERE _key = ?1
