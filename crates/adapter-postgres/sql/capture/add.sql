-- A feed's life begins here, once.
INSERT INTO truekeep.capture (feed, relation, incarnation, key_form)
VALUES ($1, $2, gen_random_uuid()::text, $3)
ON CONFLICT (feed) DO NOTHING
