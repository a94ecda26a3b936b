//! Items through a ledger on a Postgres server: claimed, settled; against a bare queue of the same
//! shape on the same server.

use std::error::Error;
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};
use truekeep_adapter_postgres::PostgresLedger;
use truekeep_core::guard::Guard;
use truekeep_core::ports::{
    Acquired, Announcement, Commit, Committed, Items, Leases, Ledger, LedgerWrite, NewRun,
    ProcedureKind, RunHealth, RunState, Settle,
};
use truekeep_core::{
    CommitToken, Fingerprint, HolderId, Incarnation, LeaseToken, PipelineName, RulesNumber, RunId,
    RunVersion, ScopeId,
};
use truekeep_postgres_server::TestDatabase;

use crate::measure::{Bar, Figure};

/// Who claims at once: as many pipelines, as each has one claimer.
const CLAIMERS: u64 = 4;

/// Items of a claim, as a worker claims them.
const BATCH: u32 = 100;

/// How long each loop runs.
const LONG: Duration = Duration::from_secs(8);

/// Items that wait when it is said what one that is claimed alone costs.
const FEW: u64 = 1_000;

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Claims and settles, ours and bare, in batches and one by one; and beside many that wait.
pub fn run(rows: u64) -> Result<Vec<Figure>, Box<dyn Error>> {
    let runtime = crate::database::runtime()?;
    runtime.block_on(measured(rows)).map_err(|error| error as Box<dyn Error>)
}

async fn measured(rows: u64) -> Done<Vec<Figure>> {
    let Some(server) = truekeep_postgres_server::private(&[]) else { return Ok(Vec::new()) };
    let test = server.database().await;
    let ledger = PostgresLedger::open(&test.address, Duration::from_secs(10)).await?;
    let mut claimers = Vec::new();
    for number in 0..CLAIMERS {
        claimers.push(Claimer::new(&ledger, number).await?);
    }
    test.run(BARE).await;
    let mut figures = Vec::new();
    for (name, batch, bar) in [("in batches of 100", BATCH, 0.4), ("one by one", 1, 0.7)] {
        // More than either loop gets through.
        let each = u64::from(batch) * 20_000;
        fill(&test, &claimers, each).await?;
        let ours = rate(&mut claimers, batch, each).await?;
        let bare = bare_rate(&test, batch, each).await?;
        let seconds = |rate: f64| Duration::from_secs_f64(1_000_000.0 / rate);
        let name = format!("items, {CLAIMERS} claimers, {name}");
        figures.push(Figure::rates(
            &name,
            1_000_000,
            seconds(ours),
            seconds(bare),
            Bar::AtLeast(bar),
        ));
    }
    let mut alone = claimers.split_off(3);
    let mut few = Vec::new();
    for waiting in [FEW, rows] {
        fill(&test, &alone, waiting).await?;
        few.push(turn(&mut alone[0]).await?);
    }
    let name = format!("a claim and its commit, {rows} items waiting (bare: {FEW})");
    figures.push(Figure::times(&name, 1, few[1], few[0], Bar::AtMost(1.5)));
    Ok(figures)
}

/// A worker of one pipeline.
struct Claimer {
    ledger: PostgresLedger,
    scope: ScopeId,
    run: RunId,
    guard: Guard,
    commits: u64,
}

impl Claimer {
    async fn new(ledger: &PostgresLedger, number: u64) -> Done<Self> {
        let scope = ScopeId::whole(PipelineName::parse(&format!("pipeline-{number}"))?);
        let announcement = Announcement {
            pipeline: scope.pipeline().clone(),
            incarnation: Incarnation::parse("life")?,
            fingerprint: Fingerprint::parse("bench")?,
            text: "{}".into(),
            replaces: None,
            above: RulesNumber::default(),
            anew: false,
        };
        ledger.announce(&announcement).await?;
        let run = RunId::parse(&format!("run-{number}"))?;
        let new = NewRun {
            id: run.clone(),
            scope: scope.clone(),
            procedure: ProcedureKind::Follow,
            key: "follow".into(),
            phase: "{}".into(),
        };
        ledger.open_run(&new).await?;
        let token = LeaseToken::parse(&format!("lease-{number}"))?;
        let holder = HolderId::parse("bench")?;
        let day = Duration::from_secs(86_400);
        let Acquired::Ours { lease, .. } = ledger.acquire(&scope, &holder, &token, day).await?
        else {
            return Err("the lease is held".into());
        };
        let run_version = RunVersion::new(0);
        let guard = Guard { token, fence: lease.fence, run_version, rules: RulesNumber::new(1) };
        Ok(Self { ledger: ledger.clone(), scope, run, guard, commits: 0 })
    }

    /// Claims and settles once; answers how many.
    async fn turn(&mut self, batch: u32) -> Done<u64> {
        let claimed = self.ledger.claim(&self.scope, &self.guard, batch).await?;
        let claimed = claimed.map_err(|lost| format!("{lost:?}"))?;
        let settled: Vec<Settle> = claimed
            .into_iter()
            .map(|item| Settle { key: item.key, version: item.version })
            .collect();
        let count = settled.len() as u64;
        self.commits += 1;
        let commit = Commit {
            run: self.run.clone(),
            scope: self.scope.clone(),
            guard: self.guard.clone(),
            token: CommitToken::parse(&format!("commit-{}", self.commits))?,
            phase: "{}".into(),
            state: RunState::Active,
            health: RunHealth::default(),
            delivered: count,
            writes: vec![LedgerWrite::Settle(settled)],
        };
        match self.ledger.commit(&commit).await? {
            Committed::Landed(version, _) => self.guard.run_version = version,
            Committed::Lost(lost) => return Err(format!("{lost:?}").into()),
        }
        Ok(count)
    }
}

/// Empties the items and gives each claimer so many that are due.
async fn fill(test: &TestDatabase, claimers: &[Claimer], each: u64) -> Done<()> {
    let mut sql = String::from("DELETE FROM truekeep_ledger.item;");
    for claimer in claimers {
        sql += &format!(
            "INSERT INTO truekeep_ledger.item SELECT '{}', n::text::bytea, n, 'upsert', 'retry', 0, n, 'CODE', '', 5, NULL
             FROM generate_series(1, {each}) AS n;",
            claimer.scope
        );
    }
    let mut admin = test.connect().await;
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut admin).await?;
    for sql in ["VACUUM (ANALYZE) truekeep_ledger.item", "CHECKPOINT"] {
        sqlx::raw_sql(sql).execute(&mut admin).await?;
    }
    Ok(())
}

/// Items a second of all claimers at once.
async fn rate(claimers: &mut Vec<Claimer>, batch: u32, each: u64) -> Done<f64> {
    let began = Instant::now();
    let tasks: Vec<_> = claimers
        .drain(..)
        .map(|mut claimer| {
            tokio::spawn(async move {
                let mut done = 0;
                while began.elapsed() < LONG && done < each {
                    done += claimer.turn(batch).await?;
                }
                Done::Ok((claimer, done))
            })
        })
        .collect();
    let mut all = 0;
    for task in tasks {
        let (claimer, done) = task.await??;
        claimers.push(claimer);
        all += done;
    }
    Ok(all as f64 / began.elapsed().as_secs_f64())
}

/// How long a claim of one item and its commit take, on average.
async fn turn(claimer: &mut Claimer) -> Done<Duration> {
    const TURNS: u32 = 400;
    let began = Instant::now();
    for _ in 0..TURNS {
        claimer.turn(1).await?;
    }
    Ok(began.elapsed() / TURNS)
}

/// A queue of the same shape with what any queue needs.
const BARE: &str = "
    CREATE TABLE job (
        scope text COLLATE \"C\", key bytea, version int8 NOT NULL, kind text NOT NULL, state text NOT NULL,
        attempts int8 NOT NULL, due_at int8 NOT NULL, code text NOT NULL, reason text NOT NULL, changed_at int8 NOT NULL,
        lease text, PRIMARY KEY (scope, key)
    );
    CREATE INDEX job_due ON job (scope, due_at, key) WHERE state <> 'leased';";

/// Jobs a second of as many loops, each of two prepared statements and two commits.
async fn bare_rate(test: &TestDatabase, batch: u32, each: u64) -> Done<f64> {
    let mut admin = test.connect().await;
    let fill = format!(
        "TRUNCATE job;
        INSERT INTO job SELECT s::text, n::text::bytea, n, 'upsert', 'retry', 0, n, 'CODE', '', 5, NULL
        FROM generate_series(1, {CLAIMERS}) AS s, generate_series(1, {each}) AS n;
        ANALYZE job; CHECKPOINT"
    );
    for statement in fill.split(';') {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned())).execute(&mut admin).await?;
    }
    let began = Instant::now();
    let mut tasks = Vec::new();
    for scope in 1..=CLAIMERS {
        let mut connection = PgConnection::connect(&test.address).await?;
        tasks.push(tokio::spawn(async move {
            let mut done = 0;
            while began.elapsed() < LONG && done < each {
                done += bare_turn(&mut connection, &scope.to_string(), batch).await?;
            }
            Done::Ok(done)
        }));
    }
    let mut all = 0;
    for task in tasks {
        all += task.await??;
    }
    Ok(all as f64 / began.elapsed().as_secs_f64())
}

async fn bare_turn(connection: &mut PgConnection, scope: &str, batch: u32) -> Done<u64> {
    let claimed = sqlx::query(
        "UPDATE job SET state = 'leased', attempts = attempts + 1, changed_at = 6, lease = 'lease'
         FROM (SELECT key FROM job WHERE scope = $1 AND state <> 'leased' AND due_at <= $2
               ORDER BY due_at, key LIMIT $3 FOR UPDATE SKIP LOCKED) AS due
         WHERE job.scope = $1 AND job.key = due.key
         RETURNING job.key, version, kind, state, attempts, due_at, code, reason, changed_at, lease",
    )
    .bind(scope)
    .bind(i64::MAX)
    .bind(i64::from(batch))
    .fetch_all(&mut *connection)
    .await?;
    let keys: Vec<Vec<u8>> = claimed.iter().map(|row| row.get(0)).collect();
    let settled = sqlx::query("DELETE FROM job WHERE scope = $1 AND key = ANY ($2)")
        .bind(scope)
        .bind(keys)
        .execute(connection)
        .await?;
    Ok(settled.rows_affected())
}
