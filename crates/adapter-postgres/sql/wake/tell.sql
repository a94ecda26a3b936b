
  -- Who sleeps holds this lock. It is let go at once, so that nobody waits for it.
  IF NOT (pg_try_advisory_lock_shared({sleep}) AND pg_advisory_unlock_shared({sleep})) THEN
    PERFORM pg_notify({channel}, '');
  END IF;
