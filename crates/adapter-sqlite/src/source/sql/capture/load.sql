SELECT incarnation, key_form, trusted, schema_version, pruned, generation, stage, place, filled,
       total, filling
FROM truekeep_capture
WHERE feed = ?1
