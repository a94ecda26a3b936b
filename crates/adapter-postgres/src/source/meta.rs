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

use super::line::Line;
use super::resolve::Resolved;
use super::snapshot::{Rest, to_moment};

/// The source in one snapshot.
#[derive(Debug)]
pub(super) struct Seen {
    pub now: Moment,
    /// Whether marks wait.
    pub marks: bool,
    /// What the statements must have been made for.
    pub shape: String,
    line: Line,
    incarnation: String,
    trusted: Option<String>,
    filling: bool,
    pruned: Moment,
    registration: Option<Registration>,
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
        let (life, born): (String, String) = (row.try_get(1)?, row.try_get(2)?);
        Ok(Self {
            now: moment(0)?,
            incarnation: format!("{life}.{born}"),
            trusted: row.try_get(3)?,
            filling: row.try_get(4)?,
            pruned: moment(5)?,
            registration,
            line: Line::read(row, 8)?,
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
            repairable: self.line.is_earlier(&Rest::of(at)?),
            registration: self.registration.clone(),
            capture: self.capture()?,
        })
    }

    /// The start of the server that has to be noted before a page is handed out.
    pub fn start_to_note(&self) -> Option<String> {
        self.line.unnoted()
    }

    /// What a place that is made now says of the server.
    pub fn here(&self) -> Rest {
        self.line.here()
    }

    /// Whether this is the source that gave the place, and lost nothing since.
    fn continues(&self, at: &Place) -> Result<bool, Failure> {
        let rest = Rest::of(at)?;
        let target = rest.target.as_ref().is_none_or(|target| self.now.includes(target));
        Ok(self.line.goes_on(&rest) && target && self.now.includes(&at.passed))
    }
}

fn strange(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> PortError {
    PortError::new("read the feed", FailureClass::Halted, Code::SOURCE_CORRUPT)
        .detail("truekeep.capture holds what is not ours")
        .caused_by(error)
}
