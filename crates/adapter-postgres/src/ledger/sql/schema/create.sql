-- Only if it is not there: who was given one may have no right to make one.
CREATE SCHEMA truekeep_ledger
