-- An operator's wish: the item as it is, to be tried now, with no attempt counted.
UPDATE item SET state = 'pending', attempts = 0, due_at = :now, changed_at = :now, lease = NULL
WHERE scope = :scope AND key = :key
