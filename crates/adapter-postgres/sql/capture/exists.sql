-- Whether what all feeds share is there.
SELECT to_regclass('truekeep.capture') IS NOT NULL AND to_regclass('truekeep.consumer') IS NOT NULL
