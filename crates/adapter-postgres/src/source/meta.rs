//! What the source remembers of a feed and says of itself, in the snapshot of a page.
//!
//! Invariant: F2. Who the source is: the feed's own life, the cluster, the database; how it went on:
//! the timeline, the consumer's own acknowledgement, and whether the snapshot includes what was passed.

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{CaptureState, Consumer, Registration, SourceView};
use truekeep_core::{Incarnation, Moment, Place, RegistrationCounter, Signature};
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::sqlx::postgres::PgRow;
use truekeep_postgres::{Failure, Transaction};

use super::resolve::Resolved;
use super::snapshot::{Rest, log_position, to_moment};

/// The source in one snapshot.
#[derive(Debug)]
pub(super) struct Seen {
    pub now: Moment,
    pub timeline: u32,
    /// How far the server's log was when this was read.
    pub log: u64,
    /// Whether marks wait.
    pub marks: bool,
    /// What the statements must have been made for.
    pub shape: String,
    incarnation: String,
    trusted: Option<String>,
    filling: bool,
    pruned: Moment,
    registration: Option<Registration>,
    /// Where the log of the timeline before this one ended, if the server remembers.
    forked: Option<u64>,
    signature: String,
}

/// There is no feed.
pub(super) fn missing(operation: &'static str, relation: &Resolved) -> PortError {
    PortError::new(operation, FailureClass::Halted, Code::CAPTURE_MISSING)
        .detail(format!("the table is {}", relation.table.name.quoted()))
}

/// A statement about a feed that is not there says so.
pub(super) fn unless_missing(
    operation: &'static str,
    relation: &Resolved,
    error: truekeep_postgres::sqlx::Error,
) -> Failure {
    // No such table, no such schema.
    match truekeep_postgres::says(&error).as_deref() {
        Some("42P01" | "3F000") => missing(operation, relation).into(),
        _ => error.into(),
    }
}

impl Seen {
    /// Looks.
    ///
    /// # Errors
    /// `CAPTURE_MISSING` if there is no feed.
    pub async fn look(
        reading: &mut Transaction,
        operation: &'static str,
        relation: &Resolved,
        consumer: Option<&Consumer>,
    ) -> Result<Self, Failure> {
        let of = |part: fn(&Consumer) -> String| consumer.map(part).unwrap_or_default();
        let query = Transaction::query(relation.statements.view.clone())
            .bind(relation.names.stem().to_owned())
            .bind(of(|consumer| consumer.ledger.as_str().to_owned()))
            .bind(of(|consumer| consumer.pipeline.as_str().to_owned()));
        let rows = reading.rows(query).await;
        let rows = rows.map_err(|error| unless_missing(operation, relation, error))?;
        let row = rows.first().ok_or_else(|| missing(operation, relation))?;
        Self::read(row)
    }

    fn read(row: &PgRow) -> Result<Self, Failure> {
        let moment = |place: usize| -> Result<Moment, Failure> {
            Ok(to_moment(&row.try_get::<String, _>(place)?)?)
        };
        let counter: Option<i64> = row.try_get(6)?;
        let registration = match counter {
            None => None,
            Some(counter) => Some(Registration {
                counter: RegistrationCounter::new(counter.unsigned_abs()),
                passed: moment(7)?,
            }),
        };
        let (life, system, database): (String, String, i64) =
            (row.try_get(1)?, row.try_get(8)?, row.try_get(9)?);
        let timeline: String = row.try_get(10)?;
        let log: String = row.try_get(11)?;
        let forked: Option<String> = row.try_get(12)?;
        Ok(Self {
            now: moment(0)?,
            incarnation: format!("{life}.{system}.{database}"),
            trusted: row.try_get(2)?,
            filling: row.try_get(3)?,
            pruned: moment(4)?,
            registration,
            timeline: u32::from_str_radix(&timeline, 16).unwrap_or(0),
            log: log_position(&log).unwrap_or(0),
            forked: forked.as_deref().and_then(log_position),
            marks: row.try_get(13)?,
            signature: row.try_get::<Option<String>, _>(14)?.unwrap_or_default(),
            shape: row.try_get::<Option<String>, _>(15)?.unwrap_or_default(),
        })
    }

    /// Whether every change is recorded.
    pub fn capture(&self) -> Result<CaptureState, Failure> {
        if self.filling {
            return Ok(CaptureState::Filling);
        }
        if self.trusted.as_deref() != Some(self.signature.as_str()) {
            return Ok(CaptureState::Broken(Code::CAPTURE_CHANGED));
        }
        Ok(CaptureState::Trusted(Signature::parse(&self.signature).map_err(strange)?))
    }

    /// What a page says of the source, to who asked for a place.
    pub fn view(&self, at: &Place) -> Result<SourceView, Failure> {
        Ok(SourceView {
            incarnation: Incarnation::parse(&self.incarnation).map_err(strange)?,
            newest: self.now.clone(),
            pruned: self.pruned.clone(),
            continues: self.continues(at)?,
            registration: self.registration.clone(),
            capture: self.capture()?,
        })
    }

    /// Whether this is the source that gave the place, and lost nothing since.
    fn continues(&self, at: &Place) -> Result<bool, Failure> {
        let rest = Rest::of(at)?;
        let target = rest.target.as_ref().is_none_or(|target| self.now.includes(target));
        let line = match rest.timeline {
            None => true,
            Some(timeline) if timeline == self.timeline => true,
            // A server that was promoted lost what it had not replayed; long after it, nobody knows.
            Some(timeline) => {
                timeline < self.timeline
                    && self.forked.zip(rest.log).is_some_and(|(forked, log)| log <= forked)
            }
        };
        Ok(line && target && self.now.includes(&at.passed))
    }
}

fn strange(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> PortError {
    PortError::new("read the feed", FailureClass::Halted, Code::SOURCE_CORRUPT)
        .detail("truekeep.capture holds what is not ours")
        .caused_by(error)
}
