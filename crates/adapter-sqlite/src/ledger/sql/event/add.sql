-- What happened, for operators.
INSERT INTO event (scope, at, code, text)
VALUES (:scope, :now, :code, :text)
