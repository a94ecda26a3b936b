-- An update in place: triggers and references of others see one row change. Ranks were judged before,
-- under the mark's lock; the condition keeps a newer record even from a writer that ignored it, and a
-- rank that is none of ours gives way.
INSERT INTO {mirror} AS m (_key, _rules, _version, {names})
SELECT sent.key, sent.rules, sent.version, {values}
FROM unnest($1::text[], $2::bigint[], $3::bigint[], {arrays})
  AS sent (key, rules, version, {aliases})
ON CONFLICT (_key) DO UPDATE
SET _rules = excluded._rules, _version = excluded._version, {assignments}
WHERE (m._rules, m._version) <= (excluded._rules, excluded._version)
  OR m._rules < 0 OR m._version < 0
RETURNING m._key
