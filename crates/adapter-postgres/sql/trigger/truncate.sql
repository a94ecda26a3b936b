
BEGIN
  -- The rows are still here, and will be gone: this relation's only, others keep theirs.
  EXECUTE {before} || TG_RELID::regclass || {after};
  RETURN NULL;
END
