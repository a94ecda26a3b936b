-- A feed's row, locked: only one fills, installs or folds at a time.
SELECT key_form, trusted, filling, first, sweeping, place, filled, total
FROM truekeep.capture WHERE feed = $1 FOR UPDATE
