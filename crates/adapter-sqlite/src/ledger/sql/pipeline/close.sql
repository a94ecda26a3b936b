-- A removal begins. A fence is drawn, if there ever was a holder, so that what the last one still
-- sends is refused wherever fences are checked.
UPDATE pipeline SET
    state = 'removing',
    revision = revision + 1,
    fence = fence + (fence > 0),
    quiet_at = iif(fence > 0, :quiet_at, :now)
WHERE name = :pipeline
