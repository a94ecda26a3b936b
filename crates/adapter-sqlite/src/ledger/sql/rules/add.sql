-- The primary key refuses a number that was given before.
INSERT INTO rules (pipeline, number, fingerprint, text, announced_at)
VALUES (:pipeline, :number, :fingerprint, :text, :now)
