-- The ledger: pipelines and their rules, leases, runs, items, certificates, history.
--
-- Times are milliseconds since 1970-01-01 UTC by this server's clock. Names and tokens are compared
-- by bytes. A scope is named as it is printed. Whoever writes holds the row of the pipeline.

-- Which ledger this is, drawn once, and the last step that was taken. Whoever writes of a name that
-- has no row holds this one.
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
-- The newest run: there is one for each reconcile that ever was.
CREATE INDEX run_epoch ON truekeep_ledger.run (scope, procedure, epoch);
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

-- For readers in this database: as the ledger's owner, so that they need no right but that on the
-- schema. Each is one statement's snapshot.

-- A moment as a snapshot. One of a source with one writer at a time, or in which nothing was running,
-- is the newest number that it includes.
CREATE FUNCTION truekeep_ledger.snapshot(moment text) RETURNS pg_snapshot
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT CASE
        WHEN strpos(moment, ':') > 0 THEN moment
        ELSE concat(greatest(moment::int8 + 1, 3), ':', greatest(moment::int8 + 1, 3), ':')
    END::pg_snapshot
$$;

-- Whether one includes all that the other does.
CREATE FUNCTION truekeep_ledger.includes(one pg_snapshot, other pg_snapshot) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
    SELECT pg_snapshot_xmax(other) <= pg_snapshot_xmax(one)
        AND NOT EXISTS (
            SELECT FROM pg_snapshot_xip(one) AS running
            WHERE pg_visible_in_snapshot(running, other)
        )
$$;

-- The snapshot of now, if the feed of a pipeline is in this database, is the one that its run knows,
-- records every change, and has nothing that the certificate's moment does not include. An idle run
-- writes nothing, so a certificate gets no younger by itself. Who follows a server that may be behind
-- is told nothing of now.
CREATE FUNCTION truekeep_ledger.current(life text, moment text, tail jsonb) RETURNS pg_snapshot
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    feed text;
    acknowledged int8;
    seen record;
BEGIN
    IF pg_is_in_recovery() OR moment IS NULL OR tail IS NULL
        OR to_regclass('truekeep.consumer') IS NULL
    THEN
        RETURN NULL;
    END IF;
    EXECUTE 'SELECT c.feed, c.counter FROM truekeep.consumer AS c
        JOIN truekeep_ledger.ledger AS l ON l.id = c.ledger WHERE c.pipeline = $1'
        INTO feed, acknowledged USING life;
    IF feed IS NULL
        OR to_regprocedure(format('truekeep.%I(pg_snapshot)', 'look_' || feed)) IS NULL
    THEN
        RETURN NULL;
    END IF;
    EXECUTE format('SELECT * FROM truekeep.%I($1)', 'look_' || feed)
        INTO seen USING truekeep_ledger.snapshot(moment);
    IF seen.trusted AND NOT seen.stirs AND seen.incarnation = tail ->> 'feed'
        AND acknowledged - (tail #>> '{registered,counter}')::int8 IN (0, 1)
        AND truekeep_ledger.includes(seen.now, truekeep_ledger.snapshot(moment))
    THEN
        RETURN seen.now;
    END IF;
    RETURN NULL;
EXCEPTION
    WHEN insufficient_privilege THEN
        -- Somebody else's feed.
        RETURN NULL;
END
$$;

-- What readers may rely on: one row, whatever the name. What is not known is not complete.
CREATE FUNCTION truekeep_ledger.coverage(pipeline text, token text DEFAULT NULL)
RETURNS TABLE (
    complete boolean, state text, paused boolean, code text, moment text, rules int8, parked int8,
    age interval
)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    WITH known AS MATERIALIZED (
        SELECT
            CASE
                WHEN c.state IN ('complete', 'partial') AND c.rules <> p.rules THEN 'stale'
                WHEN c.state = 'running' AND r.phase ->> 'phase' = 'halted' THEN 'failed'
                ELSE c.state
            END AS state,
            p.state = 'paused' AS paused,
            c.code, c.moment, c.rules, c.parked, c.changed_at,
            CASE WHEN c.state = 'complete' AND c.unsettled = 0 THEN
                truekeep_ledger.current(p.incarnation, c.moment, r.phase -> 'tail')
            END AS now
        FROM truekeep_ledger.pipeline AS p
        JOIN truekeep_ledger.certificate AS c ON c.scope = p.name
        LEFT JOIN LATERAL (
            SELECT f.phase::jsonb AS phase FROM truekeep_ledger.run AS f
            WHERE f.scope = c.scope AND f.procedure = 'follow'
            ORDER BY f.epoch DESC
            LIMIT 1
        ) AS r ON true
        WHERE p.name = $1 AND p.state <> 'removed'
    )
    SELECT
        coalesce(
            k.state = 'complete' AND ($2 IS NULL OR truekeep_ledger.includes(
                coalesce(k.now, truekeep_ledger.snapshot(k.moment)), truekeep_ledger.snapshot($2)
            )),
            false
        ),
        coalesce(k.state, 'unknown'),
        coalesce(k.paused, false),
        k.code,
        coalesce(k.now::text, k.moment),
        k.rules,
        coalesce(k.parked, 0),
        CASE WHEN k.now IS NOT NULL THEN interval '0' ELSE
            greatest(clock_timestamp() - to_timestamp(k.changed_at / 1000.0), interval '0')
        END
    FROM (SELECT) AS one
    LEFT JOIN known AS k ON true
$$;

-- Whether it is complete, and that was known not longer ago.
CREATE FUNCTION truekeep_ledger.ready(pipeline text, age_max interval DEFAULT NULL) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT c.complete AND coalesce($2 IS NULL OR c.age <= $2, false)
    FROM truekeep_ledger.coverage($1) AS c
$$;
