-- Counts the items anew and judges nothing: the moment still holds.
UPDATE certificate SET
    parked = (SELECT count(*) FROM item WHERE scope = :scope AND state = 'parked'),
    unsettled = (SELECT count(*) FROM item WHERE scope = :scope AND state IN ('pending', 'leased', 'retry')),
    changed_at = :now
WHERE scope = :scope
