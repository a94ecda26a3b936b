-- A removal begins. A fence is drawn, if there ever was a holder, so that what the last one still
-- sends is refused wherever fences are checked.
UPDATE truekeep_ledger.pipeline SET
    state = 'removing',
    revision = revision + 1,
    fence = fence + (fence > 0)::int4,
    quiet_at = CASE WHEN fence > 0 THEN $2::int8 ELSE $3 END
WHERE name = $1
