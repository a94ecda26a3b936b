-- The ledger: pipelines and their rules, leases, runs, items, certificates, history.
--
-- Times are milliseconds since 1970-01-01 UTC by this server's clock. Names and tokens are compared
-- by bytes. A scope is named as it is printed. Whoever writes holds the row of the pipeline.

-- Which ledger this is, drawn once, and the last step that was taken. Whoever gives a name its first
-- row holds this one.
CREATE TABLE truekeep_ledger.ledger (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id text COLLATE "C" NOT NULL,
    version int4 NOT NULL
);
INSERT INTO truekeep_ledger.ledger (id, version)
VALUES (pg_catalog.replace(pg_catalog.gen_random_uuid()::text, '-', ''), 0);

-- One row per name. That of a pipeline that was removed stays, so that a new life of the name is
-- given no rules number and no fence that were given before.
CREATE TABLE truekeep_ledger.pipeline (
    name text COLLATE "C" PRIMARY KEY,
    incarnation text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL
        CHECK (state IN ('working', 'paused', 'removing', 'removed')),
    -- Counts what operators decided.
    revision int8 NOT NULL,
    -- The number of the rules in force, or of those of the last life; it only grows.
    rules int8 NOT NULL,
    -- The greatest fence that was given; it only grows.
    fence int8 NOT NULL,
    -- Of a removal: whether the sink is emptied, and from when on nothing of former holders can
    -- arrive.
    purge boolean NOT NULL,
    quiet_at int8 CHECK ((state = 'removing') = (quiet_at IS NOT NULL)),
    -- The newest version that the feed had when it was removed.
    newest int8 NOT NULL
);

-- Every set of rules a pipeline has had: an old generation is followed by its own.
CREATE TABLE truekeep_ledger.rules (
    pipeline text COLLATE "C" NOT NULL REFERENCES truekeep_ledger.pipeline (name),
    number int8 NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    text text NOT NULL,
    announced_at int8 NOT NULL,
    PRIMARY KEY (pipeline, number)
);

-- Leases that were taken and not released; a row past its expiry tells of a crash.
CREATE TABLE truekeep_ledger.lease (
    scope text COLLATE "C" PRIMARY KEY,
    pipeline text COLLATE "C" NOT NULL REFERENCES truekeep_ledger.pipeline (name),
    holder text COLLATE "C" NOT NULL,
    token text COLLATE "C" NOT NULL,
    fence int8 NOT NULL,
    expires_at int8 NOT NULL,
    -- The length it was last taken or renewed with: an expiry further away means that the clock
    -- went back.
    ttl_ms int8 NOT NULL
);

-- One row per scope that the ledger knows.
CREATE TABLE truekeep_ledger.certificate (
    scope text COLLATE "C" PRIMARY KEY,
    pipeline text COLLATE "C" NOT NULL REFERENCES truekeep_ledger.pipeline (name),
    state text COLLATE "C" NOT NULL
        CHECK (state IN ('never', 'running', 'complete', 'partial', 'stale', 'failed')),
    code text,
    moment text,
    rules int8 NOT NULL,
    parked int8 NOT NULL,
    unsettled int8 NOT NULL,
    changed_at int8 NOT NULL
);
CREATE INDEX certificate_pipeline ON truekeep_ledger.certificate (pipeline);

CREATE TABLE truekeep_ledger.run (
    id text COLLATE "C" PRIMARY KEY,
    scope text COLLATE "C" NOT NULL REFERENCES truekeep_ledger.certificate (scope),
    pipeline text COLLATE "C" NOT NULL REFERENCES truekeep_ledger.pipeline (name),
    procedure text COLLATE "C" NOT NULL CHECK (procedure IN ('follow', 'reconcile')),
    key text COLLATE "C" NOT NULL,
    epoch int8 NOT NULL,
    version int8 NOT NULL,
    phase text NOT NULL,
    state text COLLATE "C" NOT NULL
        CHECK (state IN ('active', 'succeeded', 'failed', 'stopped')),
    -- Why it failed or stopped.
    failure text,
    attempts int8 NOT NULL,
    code text,
    text text NOT NULL,
    due_at int8,
    -- The last commit and the version it made; an operator's wish moves the version past it.
    token text COLLATE "C",
    token_version int8,
    delivered int8 NOT NULL,
    -- Opening is idempotent by the key.
    UNIQUE (scope, procedure, key)
);
-- One open run per scope and procedure.
CREATE UNIQUE INDEX run_open ON truekeep_ledger.run (scope, procedure)
    WHERE state IN ('active', 'failed');
CREATE INDEX run_pipeline ON truekeep_ledger.run (pipeline);

-- Deliveries that did not go straight through: at most one per key. A key is any text, and text here
-- has no NUL; as bytes it also has the order that keys have.
CREATE TABLE truekeep_ledger.item (
    scope text COLLATE "C" NOT NULL REFERENCES truekeep_ledger.certificate (scope),
    key bytea NOT NULL,
    version int8 NOT NULL,
    kind text COLLATE "C" NOT NULL CHECK (kind IN ('upsert', 'delete')),
    state text COLLATE "C" NOT NULL CHECK (state IN ('pending', 'leased', 'retry', 'parked')),
    attempts int8 NOT NULL,
    due_at int8 NOT NULL,
    code text NOT NULL,
    reason text NOT NULL,
    changed_at int8 NOT NULL,
    -- The lease under which it is being tried, if it is.
    lease text COLLATE "C" CHECK ((state = 'leased') = (lease IS NOT NULL)),
    PRIMARY KEY (scope, key)
);
-- The order of claims, and what comes next.
CREATE INDEX item_due ON truekeep_ledger.item (scope, due_at, key) WHERE state <> 'parked';
-- What a claim left behind.
CREATE INDEX item_leased ON truekeep_ledger.item (scope, due_at, key) WHERE state = 'leased';
-- What changed later than now, after the clock went back.
CREATE INDEX item_changed ON truekeep_ledger.item (changed_at) WHERE state <> 'parked';

-- How many items a scope has. Counting them for each commit would take longer the more there are.
CREATE TABLE truekeep_ledger.tally (
    scope text COLLATE "C" PRIMARY KEY
        REFERENCES truekeep_ledger.certificate (scope) ON DELETE CASCADE,
    unsettled int8 NOT NULL,
    parked int8 NOT NULL
);
CREATE FUNCTION truekeep_ledger.count_items() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        UPDATE truekeep_ledger.tally AS t
        SET unsettled = t.unsettled - g.unsettled, parked = t.parked - g.parked
        FROM (
            SELECT scope, count(*) FILTER (WHERE state <> 'parked') AS unsettled,
                count(*) FILTER (WHERE state = 'parked') AS parked
            FROM gone GROUP BY scope
        ) AS g
        WHERE t.scope = g.scope;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO truekeep_ledger.tally AS t (scope, unsettled, parked)
        SELECT scope, count(*) FILTER (WHERE state <> 'parked'),
            count(*) FILTER (WHERE state = 'parked')
        FROM come GROUP BY scope
        ON CONFLICT (scope) DO UPDATE SET
            unsettled = t.unsettled + excluded.unsettled,
            parked = t.parked + excluded.parked;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER count_come AFTER INSERT ON truekeep_ledger.item
    REFERENCING NEW TABLE AS come
    FOR EACH STATEMENT EXECUTE FUNCTION truekeep_ledger.count_items();
CREATE TRIGGER count_changed AFTER UPDATE ON truekeep_ledger.item
    REFERENCING OLD TABLE AS gone NEW TABLE AS come
    FOR EACH STATEMENT EXECUTE FUNCTION truekeep_ledger.count_items();
CREATE TRIGGER count_gone AFTER DELETE ON truekeep_ledger.item
    REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION truekeep_ledger.count_items();

-- What happened. It outlives a pipeline.
CREATE TABLE truekeep_ledger.event (
    id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    scope text COLLATE "C" NOT NULL,
    at int8 NOT NULL,
    code text NOT NULL,
    text text NOT NULL
);
-- The newest first for readers, the oldest first for pruning.
CREATE INDEX event_at ON truekeep_ledger.event (scope, at, id);
