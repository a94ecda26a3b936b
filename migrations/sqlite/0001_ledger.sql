-- The ledger: pipelines and their rules, leases, runs, items, certificates, history.
--
-- Times are milliseconds since 1970-01-01 UTC by this database's clock. Text is compared by bytes
-- (BINARY), as keys demand. A scope is named as it is printed.

-- Which ledger this is: drawn once.
CREATE TABLE ledger (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    id TEXT NOT NULL
) STRICT;
INSERT INTO ledger (one, id) VALUES (1, lower(hex(randomblob(16))));

-- One row per name. That of a pipeline that was removed stays, so that a new life of the name is
-- given no rules number and no fence that were given before.
CREATE TABLE pipeline (
    name TEXT NOT NULL PRIMARY KEY,
    incarnation TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('working', 'paused', 'removing', 'removed')),
    -- Counts what operators decided.
    revision INTEGER NOT NULL,
    -- The number of the rules in force, or of those of the last life; it only grows.
    rules INTEGER NOT NULL,
    -- The greatest fence that was given; it only grows.
    fence INTEGER NOT NULL,
    -- Of a removal: whether the sink is emptied, and from when on nothing of former holders can
    -- arrive.
    purge INTEGER NOT NULL,
    quiet_at INTEGER CHECK ((state = 'removing') = (quiet_at IS NOT NULL)),
    -- The newest version that the feed had when it was removed.
    newest INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Every set of rules a pipeline has had: an old generation is followed by its own.
CREATE TABLE rules (
    pipeline TEXT NOT NULL REFERENCES pipeline (name),
    number INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,
    text TEXT NOT NULL,
    announced_at INTEGER NOT NULL,
    PRIMARY KEY (pipeline, number)
) STRICT;

-- Leases that were taken and not released; a row past its expiry tells of a crash.
CREATE TABLE lease (
    scope TEXT NOT NULL PRIMARY KEY,
    pipeline TEXT NOT NULL REFERENCES pipeline (name),
    holder TEXT NOT NULL,
    token TEXT NOT NULL,
    fence INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- The length it was last taken or renewed with: an expiry further away means that the clock
    -- went back.
    ttl_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per scope that the ledger knows.
CREATE TABLE certificate (
    scope TEXT NOT NULL PRIMARY KEY,
    pipeline TEXT NOT NULL REFERENCES pipeline (name),
    state TEXT NOT NULL
        CHECK (state IN ('never', 'running', 'complete', 'partial', 'stale', 'failed')),
    code TEXT,
    moment TEXT,
    rules INTEGER NOT NULL,
    parked INTEGER NOT NULL,
    unsettled INTEGER NOT NULL,
    changed_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE run (
    id TEXT NOT NULL PRIMARY KEY,
    scope TEXT NOT NULL REFERENCES certificate (scope),
    pipeline TEXT NOT NULL REFERENCES pipeline (name),
    procedure TEXT NOT NULL CHECK (procedure IN ('follow', 'reconcile')),
    key TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    version INTEGER NOT NULL,
    phase TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('active', 'succeeded', 'failed', 'stopped')),
    -- Why it failed or stopped.
    failure TEXT,
    attempts INTEGER NOT NULL,
    code TEXT,
    text TEXT NOT NULL,
    due_at INTEGER,
    -- The last commit and the version it made; an operator's wish moves the version past it.
    token TEXT,
    token_version INTEGER,
    delivered INTEGER NOT NULL,
    -- Opening is idempotent by the key.
    UNIQUE (scope, procedure, key)
) STRICT;
-- One open run per scope and procedure.
CREATE UNIQUE INDEX run_open ON run (scope, procedure) WHERE state IN ('active', 'failed');

-- Deliveries that did not go straight through: at most one per key.
CREATE TABLE item (
    id INTEGER PRIMARY KEY,
    scope TEXT NOT NULL REFERENCES certificate (scope),
    key TEXT NOT NULL,
    version INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('upsert', 'delete')),
    state TEXT NOT NULL CHECK (state IN ('pending', 'leased', 'retry', 'parked')),
    attempts INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    code TEXT NOT NULL,
    reason TEXT NOT NULL,
    changed_at INTEGER NOT NULL,
    -- The lease under which it is being tried, if it is.
    lease TEXT CHECK ((state = 'leased') = (lease IS NOT NULL)),
    UNIQUE (scope, key)
) STRICT;
-- Counts by state, the next due time and the order of claims, all without the rows.
CREATE INDEX item_due ON item (scope, state, due_at, key, changed_at);

-- What happened. It outlives a pipeline.
CREATE TABLE event (
    id INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    at INTEGER NOT NULL,
    code TEXT NOT NULL,
    text TEXT NOT NULL
) STRICT;
-- The newest first for readers, the oldest first for pruning.
CREATE INDEX event_at ON event (scope, at, id);
