SELECT a.key, {numbered}
FROM (SELECT k.key COLLATE "C" AS key, {parse} FROM unnest($1::text[]) AS k (key)) AS a
-- Another text of the same value is no key.
WHERE ({canonical}) COLLATE "C" = a.key
