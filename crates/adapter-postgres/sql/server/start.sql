-- The start that the server runs since: when the program was started, and how far it then replayed its log. A server
-- whose processes crashed replays, and is not started anew.
SELECT format('[%s,%s]', (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8,
              coalesce((pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::text, 'null'))
