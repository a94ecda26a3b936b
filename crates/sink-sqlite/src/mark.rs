//! The mark: who writes the mirror, and which batch was the last.

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
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
            };
            Ok(Self { mark, holds_records: row.get(5)? })
        })
        .optional()
    }

    /// Writes the mark by the statement that does so.
    pub(crate) fn write(&self, db: &Connection, sql: &str) -> rusqlite::Result<()> {
        let Mark { ledger, pipeline, rules, fence, number } = &self.mark;
        db.prepare_cached(sql)?.execute(rusqlite::params![
            ledger.as_str(),
            pipeline.as_str(),
            rules.get(),
            fence.get(),
            number.get(),
            self.holds_records,
        ])?;
        Ok(())
    }

    /// The mark that a batch leaves. No number ever goes back: a late batch of the same holder
    /// must not look like a mirror that was restored.
    ///
    /// # Errors
    /// `SINK_OWNED` (Halted) if somebody else writes the mirror, `SINK_FENCED` (Fenced) if a
    /// later holder has.
    pub(crate) fn after(held: Option<Self>, sent: &Mark) -> Result<Self, PortError> {
        let Some(Self { mark: held, holds_records }) = held else {
            return Ok(Self { mark: sent.clone(), holds_records: false });
        };
        let refused = |class, code| PortError::new("write a batch", class, code);
        if (&held.ledger, &held.pipeline) != (&sent.ledger, &sent.pipeline) {
            let owner = format!("its ledger is {}, its pipeline {}", held.ledger, held.pipeline);
            return Err(refused(FailureClass::Halted, Code::SINK_OWNED).detail(owner));
        }
        if sent.fence < held.fence {
            let later = format!("its fence is {}, ours {}", held.fence, sent.fence);
            return Err(refused(FailureClass::Fenced, Code::SINK_FENCED).detail(later));
        }
        let mark = Mark {
            rules: held.rules.max(sent.rules),
            number: held.number.max(sent.number),
            ..sent.clone()
        };
        Ok(Self { mark, holds_records })
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
