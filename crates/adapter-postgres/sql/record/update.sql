UPDATE SET version = nextval('{version}'), xid = pg_current_xact_id(),
  deleted = excluded.deleted, row_xmin = excluded.row_xmin
