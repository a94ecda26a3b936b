DELETE FROM {marks} WHERE generation = $1
