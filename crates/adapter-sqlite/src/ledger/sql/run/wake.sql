-- An operator's wish moves the version, so that the worker looks; the last commit stays known.
UPDATE run SET version = version + 1
WHERE scope = :scope AND procedure = 'follow' AND state IN ('active', 'failed')
