UPDATE {marks} SET swap = $2 WHERE generation = $1
