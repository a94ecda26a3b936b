-- A feed's row, locked: only one fills, installs or folds at a time; and whether its life began here.
SELECT key_form, trusted, filling, first, sweeping, place, filled, total, born = ({born})
FROM truekeep.capture WHERE feed = $1 FOR UPDATE
