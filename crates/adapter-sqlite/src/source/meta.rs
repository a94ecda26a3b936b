//! What the source remembers of a feed: its incarnation, its fill, what is trusted, who reads it.

use rusqlite::{Connection, OptionalExtension, Row, params};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{CaptureState, Consumer, Registration, SourceView};
use truekeep_core::{Incarnation, Moment, Place, RegistrationCounter, Version};
use truekeep_sqlite::Failure;

use super::key::bytes;
use super::names::to_hex;
use super::resolve::Resolved;
use super::signature::Held;

/// Steps of the schema's version within which moved places are a VACUUM's, perhaps beside other
/// changes: to keep the order, the last trigger and the seal would have to be dropped and made
/// again, which takes four.
const VACUUM_STEPS_MAX: i64 = 3;

/// How far a fill is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Every row of the table gets a number.
    Rows,
    /// Feed rows without a row become tombstones.
    Sweep,
}

impl Stage {
    pub fn word(self) -> &'static str {
        match self {
            Self::Rows => "rows",
            Self::Sweep => "sweep",
        }
    }
}

/// The row of a feed.
#[derive(Debug, Clone)]
pub(super) struct Meta {
    pub incarnation: String,
    pub key_form: String,
    pub trusted: Option<String>,
    pub schema_version: i64,
    pub pruned: i64,
    pub generation: i64,
    pub stage: Option<Stage>,
    pub place: Option<Vec<u8>>,
    pub filled: i64,
    pub total: i64,
    /// The signature that the fill began under.
    pub filling: String,
}

/// What capture is, and whether what is stored about it is to be brought up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Judged {
    pub state: CaptureState,
    pub adopt: bool,
}

impl Meta {
    /// The row of a feed; `None` if there is no feed.
    pub fn load(connection: &Connection, relation: &Resolved) -> Result<Option<Self>, Failure> {
        let whole = |table: &str| relation.present.has(table);
        let names = &relation.names;
        let parts = [names.feed(), names.order(), names.counter()];
        if !whole("truekeep_capture") || !parts.iter().all(|table| whole(table)) {
            return Ok(None);
        }
        let mut load = connection.prepare_cached(include_str!("sql/capture/load.sql"))?;
        Ok(load.query_row([names.stem()], Self::read).optional()?)
    }

    /// The row of a feed.
    ///
    /// # Errors
    /// `CAPTURE_MISSING` if there is no feed.
    pub fn demand(
        connection: &Connection,
        relation: &Resolved,
        operation: &'static str,
    ) -> Result<Self, Failure> {
        Self::load(connection, relation)?.ok_or_else(|| {
            PortError::new(operation, FailureClass::Halted, Code::CAPTURE_MISSING)
                .detail(format!("the table is {}", relation.table.name))
                .into()
        })
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let stage: Option<String> = row.get(6)?;
        let place = row.get_ref(7)?.as_bytes_or_null()?.map(<[u8]>::to_vec);
        Ok(Self {
            incarnation: row.get(0)?,
            key_form: row.get(1)?,
            trusted: row.get(2)?,
            schema_version: row.get(3)?,
            pruned: row.get(4)?,
            generation: row.get(5)?,
            stage: stage.map(|word| if word == "sweep" { Stage::Sweep } else { Stage::Rows }),
            place,
            filled: row.get(8)?,
            total: row.get(9)?,
            filling: row.get(10)?,
        })
    }

    /// What capture is in this snapshot.
    pub fn judge(&self, relation: &Resolved) -> Judged {
        let present = &relation.present;
        let judged = |state, adopt| Judged { state, adopt };
        if self.stage.is_some() {
            return judged(CaptureState::Filling, false);
        }
        let moved = relation.schema_version - self.schema_version;
        match &self.trusted {
            Some(trusted) if !present.differences.is_empty() || trusted.is_empty() => {
                judged(CaptureState::Broken(Code::CAPTURE_CHANGED), false)
            }
            Some(trusted) => match present.held(trusted) {
                Held::Same => judged(CaptureState::Trusted(present.told()), moved != 0),
                Held::Moved if (1..=VACUUM_STEPS_MAX).contains(&moved) => {
                    judged(CaptureState::Trusted(present.told()), true)
                }
                Held::Moved | Held::Changed => {
                    judged(CaptureState::Broken(Code::CAPTURE_CHANGED), false)
                }
            },
            None => judged(CaptureState::Broken(Code::CAPTURE_CHANGED), false),
        }
    }

    /// What a consumer last acknowledged.
    pub fn registration(
        connection: &Connection,
        relation: &Resolved,
        consumer: &Consumer,
    ) -> Result<Option<Registration>, Failure> {
        let mut load = connection.prepare_cached(include_str!("sql/consumer/load.sql"))?;
        let identity =
            params![relation.names.stem(), consumer.ledger.as_str(), consumer.pipeline.as_str()];
        let registration = load.query_row(identity, |row| {
            Ok(Registration {
                counter: RegistrationCounter::new(number(row.get(0)?)),
                passed: Moment::at(version(row.get(1)?)),
            })
        });
        Ok(registration.optional()?)
    }

    /// What a page says about the source.
    pub fn view(
        &self,
        connection: &Connection,
        relation: &Resolved,
        consumer: &Consumer,
        at: &Place,
        newest: i64,
    ) -> Result<SourceView, Failure> {
        let registration = Self::registration(connection, relation, consumer)?;
        let newest = Moment::at(version(newest));
        Ok(SourceView {
            incarnation: Incarnation::parse(&self.incarnation).map_err(|error| {
                PortError::new("read the feed", FailureClass::Halted, Code::SOURCE_CORRUPT)
                    .detail("truekeep_capture holds no incarnation")
                    .caused_by(error)
            })?,
            continues: continues(connection, relation, at, &newest, registration.as_ref())?,
            // A file says of itself neither where it is from nor that it was put there.
            repairable: true,
            newest,
            pruned: Moment::at(version(self.pruned)),
            registration,
            capture: self.judge(relation).state,
        })
    }

    /// Trusts the present signature; ends a fill.
    pub fn trust(connection: &Connection, relation: &Resolved) -> Result<(), Failure> {
        Self::store(connection, relation, &relation.present.stored())
    }

    /// Keeps trust in a signature that only moved.
    pub fn adopt(&self, connection: &Connection, relation: &Resolved) -> Result<(), Failure> {
        let before = self.trusted.as_deref().unwrap_or_default();
        Self::store(connection, relation, &relation.present.moved(before))
    }

    fn store(connection: &Connection, relation: &Resolved, stored: &str) -> Result<(), Failure> {
        let mut trust = connection.prepare_cached(include_str!("sql/capture/trust.sql"))?;
        trust.execute(params![relation.names.stem(), stored, relation.schema_version])?;
        Ok(())
    }

    /// Begins a fill under the present signature.
    pub fn begin_fill(
        connection: &Connection,
        relation: &Resolved,
        total: i64,
    ) -> Result<(), Failure> {
        let mut begin = connection.prepare_cached(include_str!("sql/capture/begin_fill.sql"))?;
        begin.execute(params![relation.names.stem(), relation.present.stored(), total])?;
        Ok(())
    }
}

/// How many numbers from what a consumer acknowledged on keep their stamps, whether they are outdated
/// or not: its cursor is one of them, and the numbers of some seconds fit.
pub(super) const STAMPS_KEPT: i64 = 1_000_000;

/// Whether a place is one that this feed gave. The same number with another stamp was given after
/// the feed had gone back; so was a number that has no stamp although it would have been kept.
fn continues(
    connection: &Connection,
    relation: &Resolved,
    at: &Place,
    newest: &Moment,
    registration: Option<&Registration>,
) -> Result<bool, Failure> {
    if !newest.includes(&at.passed) {
        return Ok(false);
    }
    if at.rest.is_empty() {
        return Ok(true);
    }
    let number = passed(&at.passed);
    let mut stamp = connection.prepare_cached(&relation.statements.stamp)?;
    let mut rows = stamp.query([number])?;
    if let Some(row) = rows.next()? {
        return Ok(to_hex(bytes(row, 0)?) == at.rest);
    }
    let kept = |registration: &Registration| {
        let acknowledged = passed(&registration.passed);
        (acknowledged..=acknowledged.saturating_add(STAMPS_KEPT)).contains(&number)
    };
    Ok(!registration.is_some_and(kept))
}

/// SQLite's integers are signed; ours that are stored there never are.
pub(super) fn number(stored: i64) -> u64 {
    u64::try_from(stored).unwrap_or(0)
}

/// A version from the feed.
pub(super) fn version(stored: i64) -> Version {
    Version::new(number(stored))
}

/// The newest version that a moment includes, as it is stored.
pub(super) fn passed(moment: &Moment) -> i64 {
    signed(moment.newest().get())
}

/// A number as it is stored.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
