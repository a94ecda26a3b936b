-- Also ends a fill: trust and an unfinished fill exclude each other.
UPDATE truekeep_capture
SET trusted = ?2, schema_version = ?3, stage = NULL, place = NULL
WHERE feed = ?1
