CREATE TABLE IF NOT EXISTS truekeep_consumer (
    feed TEXT NOT NULL,
    ledger TEXT NOT NULL,
    pipeline TEXT NOT NULL,
    counter INTEGER NOT NULL,
    cursor INTEGER NOT NULL,
    PRIMARY KEY (feed, ledger, pipeline)
) WITHOUT ROWID
