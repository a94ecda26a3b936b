
BEGIN
  -- A statement that changed nothing takes no transaction id.
  IF NOT EXISTS (SELECT FROM {some}) THEN
    RETURN NULL;
  END IF;
  {deeds}
  {tell}
  RETURN NULL;
END
