-- Ends every open run of a pipeline. The version moves, so what an owner still commits is refused.
UPDATE truekeep_ledger.run SET state = 'stopped', failure = $2, version = version + 1
WHERE pipeline = $1 AND state IN ('active', 'failed')
