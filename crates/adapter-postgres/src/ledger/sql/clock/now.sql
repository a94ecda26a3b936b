-- This server's clock in milliseconds, as it is now and not when the transaction began.
SELECT floor(extract(epoch FROM pg_catalog.clock_timestamp()) * 1000)::int8 AS now
