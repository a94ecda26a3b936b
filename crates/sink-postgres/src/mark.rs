//! The mark: who writes the mirror, and which batch was the last.

use truekeep_core::ports::{Mark, Served};
use truekeep_core::{
    Fence, Generation, Incarnation, LedgerId, MarkNumber, RulesNumber, SwapNumber,
};
use truekeep_postgres::sqlx::postgres::{PgArguments, PgRow};
use truekeep_postgres::sqlx::query::Query;
use truekeep_postgres::sqlx::{Error, Postgres, Row};

/// The mark with what only the mirror itself counts.
#[derive(Debug, Clone)]
pub(crate) struct StoredMark {
    pub(crate) mark: Mark,
    /// Whether the mirror held a record after the last batch.
    pub(crate) holds_records: bool,
}

/// What the marks say of one generation.
#[derive(Debug, Clone)]
pub(crate) struct Marked {
    /// What readers see.
    pub(crate) served: Served,
    /// Whether the generation was prepared.
    pub(crate) prepared: bool,
    /// Its mark; none if it was never written.
    pub(crate) stored: Option<StoredMark>,
}

/// A number of ours as a column holds it.
pub(crate) fn held(number: u64) -> Result<i64, Error> {
    i64::try_from(number).map_err(|error| Error::Encode(error.into()))
}

/// A number as a column holds it; none if it is none of ours.
pub(crate) fn number(held: Option<i64>) -> Option<u64> {
    held.and_then(|held| u64::try_from(held).ok())
}

fn wrong(what: &'static str) -> Error {
    Error::Decode(what.into())
}

impl Marked {
    /// What was read: nothing is known of a generation without a row.
    pub(crate) fn read(rows: &[PgRow]) -> Result<Self, Error> {
        let Some(row) = rows.first() else {
            return Ok(Self { served: Served::FIRST, prepared: false, stored: None });
        };
        let count = |place: usize| -> Result<u64, Error> {
            number(row.try_get(place)?).ok_or_else(|| wrong("a number of the mark is none of ours"))
        };
        let served = match number(row.try_get(0)?).zip(number(row.try_get(1)?)) {
            Some((generation, swap)) => {
                Served { generation: Generation::new(generation), swap: SwapNumber::new(swap) }
            }
            None => Served::FIRST,
        };
        let prepared = row.try_get(2)?;
        let Some(ledger) = row.try_get::<Option<String>, _>(3)? else {
            return Ok(Self { served, prepared, stored: None });
        };
        let mark = Mark {
            ledger: LedgerId::parse(&ledger).map_err(|error| Error::Decode(error.into()))?,
            pipeline: Incarnation::parse(&row.try_get::<String, _>(4)?)
                .map_err(|error| Error::Decode(error.into()))?,
            rules: RulesNumber::new(count(5)?),
            fence: Fence::new(count(6)?),
            number: MarkNumber::new(count(7)?),
            removed: row.try_get(9)?,
        };
        let stored = StoredMark { mark, holds_records: row.try_get(8)? };
        Ok(Self { served, prepared, stored: Some(stored) })
    }
}

impl StoredMark {
    /// Binds the mark to the statement that writes it.
    pub(crate) fn bind(
        &self,
        generation: i64,
        query: Query<'static, Postgres, PgArguments>,
    ) -> Result<Query<'static, Postgres, PgArguments>, Error> {
        let Mark { ledger, pipeline, rules, fence, number, removed } = &self.mark;
        Ok(query
            .bind(generation)
            .bind(ledger.as_str().to_owned())
            .bind(pipeline.as_str().to_owned())
            .bind(held(rules.get())?)
            .bind(held(fence.get())?)
            .bind(held(number.get())?)
            .bind(self.holds_records)
            .bind(*removed))
    }
}
