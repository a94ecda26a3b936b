-- The sink holds these versions, so items at or below them are done.
DELETE FROM truekeep_ledger.item AS i
USING unnest($2::bytea[], $3::int8[]) AS d (key, version)
WHERE i.scope = $1 AND i.key = d.key AND i.version <= d.version
