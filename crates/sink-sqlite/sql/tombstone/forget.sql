-- What was deleted under rules that nothing newer goes below any more.
DELETE FROM {tombstones}
