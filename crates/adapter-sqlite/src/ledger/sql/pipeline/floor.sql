-- Where the feeds of removed lives had come to.
SELECT newest FROM pipeline WHERE name = :pipeline
