-- This database's clock in milliseconds. Rounded: the fraction of a double may lie just below.
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) AS now
