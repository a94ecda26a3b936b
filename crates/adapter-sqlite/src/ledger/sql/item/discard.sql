-- An operator gives the item up: it stays parked, and says so.
UPDATE item SET code = :code, reason = :reason, changed_at = :now
WHERE scope = :scope AND key = :key
