SELECT sent.place, m._rules, m._version, {reads}
FROM unnest($1::text[]) WITH ORDINALITY AS sent (key, place)
JOIN {mirror} AS m ON m._key = sent.key
