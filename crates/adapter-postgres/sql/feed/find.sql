-- The present rows of some keys.
SELECT k.ord, f.version, f.xid::text, f.deleted
FROM unnest($1::text[]) WITH ORDINALITY AS k (key, ord) JOIN {feed} AS f ON f.key = k.key COLLATE "C"
