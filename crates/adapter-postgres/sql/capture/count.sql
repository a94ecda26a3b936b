-- How many feeds there are.
SELECT count(*) FROM truekeep.capture
