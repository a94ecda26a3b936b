//! The mark: who writes the mirror, and which batch was the last.

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row};
use truekeep_core::ports::Mark;
use truekeep_core::{Fence, Incarnation, InvalidToken, LedgerId, MarkNumber, RulesNumber};

/// The mark with what only the mirror itself counts.
#[derive(Debug, Clone)]
pub(crate) struct StoredMark {
    pub(crate) mark: Mark,
    /// Whether the mirror held a record after the last batch.
    pub(crate) holds_records: bool,
}

impl StoredMark {
    /// Reads the mark by the statement that does so.
    pub(crate) fn read(db: &Connection, sql: &str) -> rusqlite::Result<Option<Self>> {
        let mut read = db.prepare_cached(sql)?;
        read.query_row([], |row| {
            let mark = Mark {
                ledger: token(row, 0, LedgerId::parse)?,
                pipeline: token(row, 1, Incarnation::parse)?,
                rules: RulesNumber::new(row.get(2)?),
                fence: Fence::new(row.get(3)?),
                number: MarkNumber::new(row.get(4)?),
                removed: row.get(6)?,
            };
            Ok(Self { mark, holds_records: row.get(5)? })
        })
        .optional()
    }

    /// Writes the mark by the statement that does so.
    pub(crate) fn write(&self, db: &Connection, sql: &str) -> rusqlite::Result<()> {
        let Mark { ledger, pipeline, rules, fence, number, removed } = &self.mark;
        db.prepare_cached(sql)?.execute(rusqlite::params![
            ledger.as_str(),
            pipeline.as_str(),
            rules.get(),
            fence.get(),
            number.get(),
            self.holds_records,
            removed,
        ])?;
        Ok(())
    }
}

fn token<T>(
    row: &Row<'_>,
    column: usize,
    parse: fn(&str) -> Result<T, InvalidToken>,
) -> rusqlite::Result<T> {
    parse(&row.get::<_, String>(column)?).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}
