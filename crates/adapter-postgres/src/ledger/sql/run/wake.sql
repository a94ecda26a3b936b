-- An operator's wish moves the version, so that the worker looks; the last commit stays known.
UPDATE truekeep_ledger.run SET version = version + 1
WHERE scope = $1 AND procedure = 'follow' AND state IN ('active', 'failed')
