DELETE FROM {tombstones} WHERE generation = $1 AND key = ANY ($2::text[])
