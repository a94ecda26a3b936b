//! The SQLite mirror.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::Sink;
use crate::Fault;
use crate::database;
use crate::law::{Entry, Held};
use crate::writer::RECORD;

/// A table in a SQLite file.
#[derive(Debug)]
pub struct Mirror;

fn file(folder: &Path) -> PathBuf {
    folder.join("mirror.db")
}

impl Sink for Mirror {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn config(&self) -> &'static str {
        "kind = \"sqlite\"\nurl = \"sqlite:sink/mirror.db\"\ntable = \"things\"\n"
    }

    fn held(&self, folder: &Path) -> Result<Held, Fault> {
        if !file(folder).exists() {
            return Ok(Held::new());
        }
        let mut db = database::open(&file(folder))?;
        let snapshot = db.transaction()?;
        if !has_tables(&snapshot)? {
            return Ok(Held::new());
        }
        let sql = format!(
            "SELECT _key, _rules, _version, {RECORD} FROM things
             UNION ALL SELECT key, rules, version, NULL FROM things__truekeep_tombstones"
        );
        let mut statement = snapshot.prepare(&sql)?;
        let rows = statement.query_map([], |row| {
            Ok((row.get(0)?, Entry { rank: (row.get(1)?, row.get(2)?), row: row.get(3)? }))
        })?;
        let mut held = Held::new();
        for row in rows {
            let (key, entry): (String, Entry) = row?;
            if let Some(other) = held.insert(key.clone(), entry) {
                return Err(format!("{key} is both live and deleted: {other:?}").into());
            }
        }
        Ok(held)
    }

    fn back_up(&self, folder: &Path, to: &Path) -> Result<(), Fault> {
        database::copy(&file(folder), &to.join("mirror.db"))
    }

    fn restore(&self, folder: &Path, from: &Path) -> Result<(), Fault> {
        database::replace(&file(folder), &from.join("mirror.db"))
    }

    fn restore_live(&self, folder: &Path, from: &Path) -> Result<bool, Fault> {
        database::copy(&from.join("mirror.db"), &file(folder))?;
        Ok(true)
    }

    fn pin(&self, folder: &Path) -> Result<Option<Connection>, Fault> {
        database::pin(&file(folder)).map(Some)
    }

    fn verify(&self, folder: &Path) -> Result<(), Fault> {
        database::verify(&file(folder))
    }
}

fn has_tables(db: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) = 2 FROM sqlite_schema
        WHERE type = 'table' AND name IN ('things', 'things__truekeep_tombstones')";
    db.query_row(sql, [], |row| row.get(0))
}
