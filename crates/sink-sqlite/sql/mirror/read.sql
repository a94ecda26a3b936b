SELECT _key, _rules, _version, {names} FROM {mirror} WHERE _key = ?1
