-- Ends every open run of a pipeline. The version moves, so what an owner still commits is refused.
UPDATE run SET state = 'stopped', failure = :code, version = version + 1
WHERE pipeline = :pipeline AND state IN ('active', 'failed')
