-- Made with each installation, as what decides whether changes are recorded is told by the rules. As its owner, so
-- that a ledger beside it needs no right on the rest.
CREATE OR REPLACE FUNCTION {look}(passed pg_snapshot)
RETURNS TABLE (now pg_snapshot, incarnation text, trusted boolean, stirs boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS {body}
