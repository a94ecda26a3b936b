SELECT count(*) FROM truekeep_capture
