//! Rows as words and words as parameters. What a row holds that is no word is a damaged ledger.

use std::time::Duration;

use truekeep_core::certificate::{Certificate, State, Tally};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::lease::Lease;
use truekeep_core::ports::{
    Event, Item, ItemKind, ItemState, PipelineRecord, PipelineState, ProcedureKind, Pulse,
    Removing, RulesRecord, Run, RunHealth, RunState,
};
use truekeep_core::{
    CommitToken, Epoch, Fence, Key, LeaseToken, Moment, PipelineName, Revision, RulesNumber,
    RunVersion, ScopeId, Timestamp, Version, limits,
};
use truekeep_postgres::sqlx::postgres::{PgArguments, PgRow};
use truekeep_postgres::sqlx::query::Query;
use truekeep_postgres::sqlx::{Decode, Postgres, Row, Type};
use truekeep_postgres::{Failure, Transaction};

/// A statement with its parameters.
pub(super) type Statement = Query<'static, Postgres, PgArguments>;

/// The rows of a statement.
pub(super) async fn all<T>(
    transaction: &mut Transaction,
    statement: Statement,
    decode: impl Fn(&PgRow) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    transaction.rows(statement).await?.iter().map(decode).collect()
}

/// The row of a statement that has at most one.
pub(super) async fn first<T>(
    transaction: &mut Transaction,
    statement: Statement,
    decode: impl Fn(&PgRow) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    Ok(all(transaction, statement, decode).await?.pop())
}

/// Runs a statement whose rows nobody wants; answers how many it touched.
pub(super) async fn execute(
    transaction: &mut Transaction,
    statement: Statement,
) -> Result<u64, Failure> {
    Ok(statement.execute(transaction.connection()).await?.rows_affected())
}

/// A number as Postgres holds it: up to 2^63 - 1.
pub(super) fn stored(number: u64) -> Result<i64, Failure> {
    i64::try_from(number).map_err(|_| {
        PortError::new("write the ledger", FailureClass::Terminal, Code::UNEXPECTED)
            .detail(format!("{number} is too large for Postgres"))
            .into()
    })
}

/// A text for people: bounded, and with a sign for NUL, which text in Postgres cannot have.
pub(super) fn told(text: &str) -> String {
    limits::bounded(text).replace('\0', "\u{2400}")
}

/// A key as it is held.
pub(super) fn bytes(key: &Key) -> Vec<u8> {
    key.as_str().as_bytes().to_vec()
}

/// Tokens as an array.
pub(super) fn texts(tokens: &[LeaseToken]) -> Vec<String> {
    tokens.iter().map(|token| token.as_str().to_owned()).collect()
}

/// A length of time as it is held.
pub(super) fn milliseconds(length: Duration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX)
}

fn corrupt(detail: String) -> Failure {
    PortError::new("read the ledger", FailureClass::Halted, Code::LEDGER_CORRUPT)
        .detail(detail)
        .into()
}

/// A row that must be there.
pub(super) fn expected<T>(row: Option<T>, what: &str) -> Result<T, Failure> {
    row.ok_or_else(|| corrupt(format!("there is no {what}")))
}

fn number(row: &PgRow, column: &str) -> Result<u64, Failure> {
    let number: i64 = row.try_get(column)?;
    u64::try_from(number).map_err(|_| corrupt(format!("{column} is {number}")))
}

fn attempts(row: &PgRow) -> Result<u32, Failure> {
    let attempts = number(row, "attempts")?;
    u32::try_from(attempts).map_err(|_| corrupt(format!("attempts is {attempts}")))
}

fn time(row: &PgRow, column: &str) -> Result<Timestamp, Failure> {
    Ok(Timestamp::from_ms(row.try_get(column)?))
}

fn code(text: impl AsRef<str>) -> Code {
    Code::from_outside(text.as_ref())
}

/// A word that is parsed from text.
pub(super) fn word<T, E>(
    row: &PgRow,
    column: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, Failure> {
    let text: String = row.try_get(column)?;
    parse(&text).map_err(|_| corrupt(format!("{column} is {text:?}")))
}

fn one_of<T: Copy>(row: &PgRow, column: &str, words: &[(T, &str)]) -> Result<T, Failure> {
    word(row, column, |text| {
        let found = words.iter().find(|(_, name)| *name == text);
        found.map(|(value, _)| *value).ok_or(())
    })
}

fn optional<T>(row: &PgRow, column: &str) -> Result<Option<T>, Failure>
where
    T: for<'r> Decode<'r, Postgres> + Type<Postgres>,
{
    Ok(row.try_get(column)?)
}

const KINDS: &[(ItemKind, &str)] = &[(ItemKind::Upsert, "upsert"), (ItemKind::Delete, "delete")];
const ITEM_STATES: &[(ItemState, &str)] = &[
    (ItemState::Pending, "pending"),
    (ItemState::Leased, "leased"),
    (ItemState::Retry, "retry"),
    (ItemState::Parked, "parked"),
];
const PROCEDURES: &[(ProcedureKind, &str)] =
    &[(ProcedureKind::Follow, "follow"), (ProcedureKind::Reconcile, "reconcile")];
const STATES: &[State] =
    &[State::Never, State::Running, State::Complete, State::Partial, State::Stale, State::Failed];

pub(super) fn kind_text(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Upsert => "upsert",
        ItemKind::Delete => "delete",
    }
}

pub(super) fn procedure_text(procedure: ProcedureKind) -> &'static str {
    match procedure {
        ProcedureKind::Follow => "follow",
        ProcedureKind::Reconcile => "reconcile",
    }
}

/// A run's state and why it failed.
pub(super) fn run_state_text(state: &RunState) -> (&'static str, Option<&str>) {
    match state {
        RunState::Active => ("active", None),
        RunState::Succeeded => ("succeeded", None),
        RunState::Failed(code) => ("failed", Some(code.as_str())),
        RunState::Stopped(code) => ("stopped", Some(code.as_str())),
    }
}

pub(super) fn pipeline(row: &PgRow) -> Result<PipelineRecord, Failure> {
    Ok(PipelineRecord {
        name: word(row, "name", PipelineName::parse)?,
        incarnation: word(row, "incarnation", truekeep_core::Incarnation::parse)?,
        rules: RulesRecord {
            number: RulesNumber::new(number(row, "number")?),
            fingerprint: word(row, "fingerprint", truekeep_core::Fingerprint::parse)?,
            text: row.try_get("text")?,
            announced_at: time(row, "announced_at")?,
        },
        state: pipeline_state(row)?,
        revision: Revision::new(number(row, "revision")?),
    })
}

fn pipeline_state(row: &PgRow) -> Result<PipelineState, Failure> {
    let removing = match optional::<i64>(row, "quiet_at")? {
        None => None,
        Some(quiet_at) => Some(Removing {
            purge: row.try_get("purge")?,
            quiet_at: Timestamp::from_ms(quiet_at),
            newest: Version::new(number(row, "newest")?),
        }),
    };
    word(row, "state", |text| match (text, removing) {
        ("working", None) => Ok(PipelineState::Working),
        ("paused", None) => Ok(PipelineState::Paused),
        ("removing", Some(removing)) => Ok(PipelineState::Removing(removing)),
        _ => Err(()),
    })
}

/// A lease with the length it was last taken or renewed with.
#[derive(Debug)]
pub(super) struct LeaseRow {
    pub(super) lease: Lease,
    ttl: Duration,
}

impl LeaseRow {
    pub(super) fn in_force(&self, now: Timestamp) -> bool {
        truekeep_core::lease::in_force(&self.lease, now, self.ttl)
    }
}

pub(super) fn lease(row: &PgRow) -> Result<LeaseRow, Failure> {
    Ok(LeaseRow {
        lease: Lease {
            holder: word(row, "holder", truekeep_core::HolderId::parse)?,
            token: word(row, "token", LeaseToken::parse)?,
            fence: Fence::new(number(row, "fence")?),
            expires_at: time(row, "expires_at")?,
        },
        ttl: Duration::from_millis(number(row, "ttl_ms")?),
    })
}

/// What a guard is compared with.
#[derive(Debug)]
pub(super) struct GuardRow {
    pub(super) rules: RulesNumber,
    pub(super) lease: Option<LeaseRow>,
    /// The version of the run, unless it ended or is not there.
    pub(super) run_version: Option<RunVersion>,
    /// The run's last commit and the version that it made.
    pub(super) landed: Option<(CommitToken, RunVersion)>,
}

pub(super) fn guard(row: &PgRow) -> Result<GuardRow, Failure> {
    let has_lease = optional::<String>(row, "token")?.is_some();
    let state: Option<String> = optional(row, "run_state")?;
    let is_open = state.is_some_and(|state| state == "active" || state == "failed");
    Ok(GuardRow {
        rules: RulesNumber::new(number(row, "rules")?),
        lease: if has_lease { Some(lease(row)?) } else { None },
        run_version: if is_open {
            Some(RunVersion::new(number(row, "run_version")?))
        } else {
            None
        },
        landed: landed(row, "run_token", "run_token_version")?,
    })
}

fn landed(
    row: &PgRow,
    token: &str,
    version: &str,
) -> Result<Option<(CommitToken, RunVersion)>, Failure> {
    if optional::<String>(row, token)?.is_none() {
        return Ok(None);
    }
    let token = word(row, token, CommitToken::parse)?;
    Ok(Some((token, RunVersion::new(number(row, version)?))))
}

/// A run; its token only if no operator's wish has moved the version since.
pub(super) fn run(row: &PgRow, scope: &ScopeId) -> Result<Run, Failure> {
    let version = RunVersion::new(number(row, "version")?);
    let failure: Option<String> = optional(row, "failure")?;
    let state = word(row, "state", |text| match (text, &failure) {
        ("active", None) => Ok(RunState::Active),
        ("succeeded", None) => Ok(RunState::Succeeded),
        ("failed", Some(failure)) => Ok(RunState::Failed(code(failure))),
        ("stopped", Some(failure)) => Ok(RunState::Stopped(code(failure))),
        _ => Err(()),
    })?;
    Ok(Run {
        id: word(row, "id", truekeep_core::RunId::parse)?,
        scope: scope.clone(),
        procedure: one_of(row, "procedure", PROCEDURES)?,
        key: row.try_get("key")?,
        epoch: Epoch::new(number(row, "epoch")?),
        version,
        phase: row.try_get("phase")?,
        state,
        health: RunHealth {
            attempts: attempts(row)?,
            code: optional::<String>(row, "code")?.map(code),
            text: row.try_get("text")?,
            due_at: optional(row, "due_at")?.map(Timestamp::from_ms),
        },
        token: landed(row, "token", "token_version")?
            .filter(|(_, made)| *made == version)
            .map(|(token, _)| token),
        delivered: number(row, "delivered")?,
    })
}

pub(super) fn tally(row: &PgRow) -> Result<Tally, Failure> {
    Ok(Tally { unsettled: number(row, "unsettled")?, parked: number(row, "parked")? })
}

/// The pulse of a run at a time.
pub(super) fn pulse(row: &PgRow, now: Timestamp) -> Result<Pulse, Failure> {
    Ok(Pulse {
        run_version: version(row)?,
        rules: RulesNumber::new(number(row, "rules")?),
        paused: row.try_get("paused")?,
        tally: tally(row)?,
        next_due: optional(row, "next_due")?.map(Timestamp::from_ms),
        now,
    })
}

fn key(row: &PgRow) -> Result<Key, Failure> {
    let bytes = row.try_get::<Vec<u8>, _>("key")?;
    let text = String::from_utf8(bytes).map_err(|_| corrupt("a key is no text".to_owned()))?;
    Ok(Key::new(text))
}

/// An item, and the lease under which it is being tried.
pub(super) fn item(row: &PgRow, scope: &ScopeId) -> Result<(Item, Option<LeaseToken>), Failure> {
    let leased = optional::<String>(row, "lease")?.is_some();
    let lease = if leased { Some(word(row, "lease", LeaseToken::parse)?) } else { None };
    let item = Item {
        scope: scope.clone(),
        key: key(row)?,
        version: Version::new(number(row, "version")?),
        kind: one_of(row, "kind", KINDS)?,
        state: one_of(row, "state", ITEM_STATES)?,
        attempts: attempts(row)?,
        due_at: time(row, "due_at")?,
        code: code(row.try_get::<String, _>("code")?),
        reason: row.try_get("reason")?,
        changed_at: time(row, "changed_at")?,
    };
    Ok((item, lease))
}

pub(super) fn certificate(row: &PgRow) -> Result<Certificate, Failure> {
    let Tally { unsettled, parked } = tally(row)?;
    let moment = match optional::<String>(row, "moment")? {
        Some(_) => Some(word(row, "moment", str::parse::<Moment>)?),
        None => None,
    };
    Ok(Certificate {
        state: word(row, "state", |text| {
            STATES.iter().find(|state| state.as_str() == text).copied().ok_or(())
        })?,
        code: optional::<String>(row, "code")?.map(code),
        moment,
        rules: RulesNumber::new(number(row, "rules")?),
        parked,
        unsettled,
        changed_at: time(row, "changed_at")?,
    })
}

pub(super) fn event(row: &PgRow) -> Result<(Timestamp, Event), Failure> {
    let event = Event { code: code(row.try_get::<String, _>("code")?), text: row.try_get("text")? };
    Ok((time(row, "at")?, event))
}

pub(super) fn rules_number(row: &PgRow) -> Result<RulesNumber, Failure> {
    Ok(RulesNumber::new(number(row, "number")?))
}

pub(super) fn last(row: &PgRow) -> Result<Option<Timestamp>, Failure> {
    Ok(optional(row, "last")?.map(Timestamp::from_ms))
}

pub(super) fn newest(row: &PgRow) -> Result<Version, Failure> {
    Ok(Version::new(number(row, "newest")?))
}

pub(super) fn version(row: &PgRow) -> Result<RunVersion, Failure> {
    Ok(RunVersion::new(number(row, "version")?))
}

pub(super) fn fence(row: &PgRow) -> Result<Fence, Failure> {
    Ok(Fence::new(number(row, "fence")?))
}

pub(super) fn lease_token(row: &PgRow) -> Result<LeaseToken, Failure> {
    word(row, "token", LeaseToken::parse)
}

pub(super) fn now(row: &PgRow) -> Result<Timestamp, Failure> {
    time(row, "now")
}

pub(super) fn schema_version(row: &PgRow) -> Result<u32, Failure> {
    let version: i32 = row.try_get("version")?;
    u32::try_from(version).map_err(|_| corrupt(format!("its version is {version}")))
}

pub(super) fn identity(row: &PgRow) -> Result<truekeep_core::LedgerId, Failure> {
    word(row, "id", truekeep_core::LedgerId::parse)
}
