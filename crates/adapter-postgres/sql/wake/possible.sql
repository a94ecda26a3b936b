-- Whether a transaction may notify: one that did cannot be prepared.
SELECT current_setting('max_prepared_transactions')::int = 0
