-- What does not change while a server runs. A pooler may answer, so nothing of the session.
SELECT pg_catalog.current_setting('server_version_num')::int4,
       pg_catalog.getdatabaseencoding()::text,
       (SELECT setting::int8 FROM pg_catalog.pg_settings WHERE name = 'deadlock_timeout'),
       pg_catalog.current_setting('synchronous_commit')
