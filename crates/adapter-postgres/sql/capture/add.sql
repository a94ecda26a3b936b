-- A feed's life begins here, once.
INSERT INTO truekeep.capture (feed, relation, incarnation, born, key_form)
VALUES ($1, $2, gen_random_uuid()::text, ({born}), $3)
ON CONFLICT (feed) DO NOTHING
