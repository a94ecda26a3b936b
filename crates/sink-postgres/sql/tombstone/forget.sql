-- What was deleted under rules that nothing newer goes below any more, or from a mirror that is gone.
DELETE FROM {tombstones} WHERE generation = $1
