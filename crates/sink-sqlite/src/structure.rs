//! The mirror's tables: made if they are not there, checked if they are, never taken over.

use rusqlite::{Connection, TransactionBehavior};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_sqlite::{Failure, Role, classify};

use crate::generations::Placed;
use crate::mark::StoredMark;
use crate::spec::{MirrorSpec, OWN_COLUMNS};
use crate::statements::{Statements, mark_of, tombstones_of};

/// A mirror: what it is made of, and the statements that keep it.
#[derive(Debug)]
pub(crate) struct Mirror {
    pub(crate) spec: MirrorSpec,
    pub(crate) sql: Statements,
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Nothing, or what is left of a mirror that was dropped or emptied by somebody else.
    Nothing,
    /// The mirror.
    Mirror,
}

impl Placed {
    /// Makes the tables unless they are there.
    pub(crate) fn prepare(&self, db: &mut Connection) -> Result<(), Failure> {
        if self.mirror(db)?.survey(db)? == Found::Mirror {
            return Ok(());
        }
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have made it, or swapped it, meanwhile.
        self.mirror(&transaction)?.make(&transaction)?;
        Ok(transaction.commit()?)
    }
}

impl Mirror {
    /// Companions of a mirror that was dropped or emptied go with it: its tombstones and its mark
    /// would say that it holds what it has lost.
    fn make(&self, transaction: &Connection) -> Result<(), Failure> {
        let sql = &self.sql;
        if self.survey(transaction)? == Found::Nothing {
            let mirror = if self.is_there(transaction)? { "" } else { &sql.create_mirror };
            for statement in [
                &sql.remove_tombstones,
                &sql.remove_mark,
                mirror,
                &sql.create_tombstones,
                &sql.create_mark,
            ] {
                transaction.execute_batch(statement).map_err(|error| self.broken(error))?;
            }
        }
        Ok(())
    }

    /// The mark; none if the mirror was never written, or was dropped or emptied.
    pub(crate) fn mark(&self, db: &Connection) -> Result<Option<StoredMark>, Failure> {
        let (kind, tombstones, mark) = self.kinds(db)?;
        if kind.is_none() || !tombstones || !mark {
            return Ok(None);
        }
        let stored = self.stored(db)?;
        let emptied = match &stored {
            Some(stored) => stored.holds_records && !self.holds_any(db, &self.sql.any_record)?,
            None => false,
        };
        Ok(stored.filter(|_| !emptied))
    }

    /// Whether the mirror is there, and fits.
    pub(crate) fn inspect(&self, db: &Connection) -> Result<bool, Failure> {
        Ok(self.survey(db)? == Found::Mirror)
    }

    fn survey(&self, db: &Connection) -> Result<Found, Failure> {
        let encoding: String = db.query_row("PRAGMA encoding", [], |row| row.get(0))?;
        if encoding != "UTF-8" {
            // Keys are compared as they are stored, and that must be in the order of UTF-8.
            return self.mismatch(format!("the file's encoding is {encoding}, not UTF-8"));
        }
        let (kind, tombstones, mark) = self.kinds(db)?;
        match kind.as_deref() {
            None => return Ok(Found::Nothing),
            Some("table") => {}
            Some(kind) => return self.mismatch(format!("it is a {kind}")),
        }
        for (is_there, name) in
            [(mark, mark_of(&self.spec.table)), (tombstones, tombstones_of(&self.spec.table))]
        {
            if !is_there {
                return self.mismatch(format!("there is no `{name}` beside it"));
            }
        }
        self.check_columns(db)?;
        let emptied = self.stored(db)?.is_some() && self.mark(db)?.is_none();
        Ok(if emptied { Found::Nothing } else { Found::Mirror })
    }

    fn check_columns(&self, db: &Connection) -> Result<(), Failure> {
        let own = OWN_COLUMNS.iter().map(|(name, kind)| Column::of(name, kind));
        let expected: Vec<Column> =
            own.chain(self.spec.columns().into_iter().map(|name| Column::of(name, ""))).collect();
        let mut read = db.prepare(&self.sql.columns)?;
        let found = read
            .query_map([&self.spec.table], |row| {
                Ok(Column { name: row.get(0)?, kind: row.get(1)?, key: row.get(2)? })
            })?
            .collect::<rusqlite::Result<Vec<Column>>>()?;
        for place in 0..expected.len().max(found.len()) {
            match (expected.get(place), found.get(place)) {
                (Some(expected), Some(found)) if expected == found => {}
                (Some(expected), Some(found)) => {
                    return self.mismatch(format!(
                        "column {} is {}, not {}",
                        place + 1,
                        found.told(),
                        expected.told()
                    ));
                }
                (Some(expected), None) => {
                    return self.mismatch(format!("it lacks column {}", expected.told()));
                }
                (None, found) => {
                    let found = found.map(Column::told).unwrap_or_default();
                    return self.mismatch(format!("it has column {found} too many"));
                }
            }
        }
        Ok(())
    }

    /// What the mirror is, and whether its tombstones and its mark are there.
    fn kinds(&self, db: &Connection) -> rusqlite::Result<(Option<String>, bool, bool)> {
        let table = &self.spec.table;
        let mut survey = db.prepare_cached(&self.sql.survey)?;
        survey.query_row([table, &tombstones_of(table), &mark_of(table)], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
    }

    pub(crate) fn is_there(&self, db: &Connection) -> rusqlite::Result<bool> {
        Ok(self.kinds(db)?.0.is_some())
    }

    /// Whether a table has a row, by the statement that asks for one.
    pub(crate) fn holds_any(&self, db: &Connection, sql: &str) -> Result<bool, Failure> {
        let holds = db.prepare_cached(sql).and_then(|mut any| any.query_row([], |row| row.get(0)));
        holds.map_err(|error| self.broken(error))
    }

    pub(crate) fn stored(&self, db: &Connection) -> Result<Option<StoredMark>, Failure> {
        StoredMark::read(db, &self.sql.read_mark).map_err(|error| self.broken(error))
    }

    fn mismatch<T>(&self, detail: String) -> Result<T, Failure> {
        let error = PortError::new("use a mirror", FailureClass::Halted, Code::MIRROR_MISMATCH);
        Err(error.detail(format!("table `{}`: {detail}", self.spec.table)).into())
    }

    /// A statement that cannot be prepared names what is not there, and a mark that cannot be
    /// read is not ours: the mirror is not as we made it, and no smaller batch will help.
    pub(crate) fn broken(&self, error: rusqlite::Error) -> Failure {
        let structural = match error.sqlite_error() {
            Some(sqlite) => sqlite.extended_code == rusqlite::ffi::SQLITE_ERROR,
            None => true,
        };
        if !structural {
            return Failure::Sqlite(error);
        }
        let mut port = classify(Role::Sink, "use a mirror", error);
        port.class = FailureClass::Halted;
        port.code = Code::MIRROR_MISMATCH;
        port.detail(format!("table `{}`", self.spec.table)).into()
    }
}

/// A column as the schema tells it.
#[derive(Debug, PartialEq, Eq)]
struct Column {
    name: String,
    kind: String,
    key: u32,
}

impl Column {
    fn of(name: &str, kind: &str) -> Self {
        Self { name: name.into(), kind: kind.into(), key: u32::from(name == OWN_COLUMNS[0].0) }
    }

    fn told(&self) -> String {
        let kind = if self.kind.is_empty() { "without a type" } else { &self.kind };
        let key = if self.key > 0 { ", the primary key" } else { "" };
        format!("`{}` ({kind}{key})", self.name)
    }
}
