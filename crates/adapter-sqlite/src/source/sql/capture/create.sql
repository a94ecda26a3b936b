-- One row per feed. `trusted` is the signature under which everything was recorded, `schema_version`
-- the schema's number when that was last seen. While `stage` is set, a fill is under way.
CREATE TABLE IF NOT EXISTS truekeep_capture (
    feed TEXT PRIMARY KEY NOT NULL,
    relation TEXT NOT NULL,
    incarnation TEXT NOT NULL,
    key_form TEXT NOT NULL,
    trusted TEXT,
    schema_version INTEGER NOT NULL,
    pruned INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    stage TEXT,
    place TEXT,
    filled INTEGER NOT NULL,
    total INTEGER NOT NULL,
    filling TEXT NOT NULL
) WITHOUT ROWID
