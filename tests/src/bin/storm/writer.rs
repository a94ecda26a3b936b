//! The application beside: a process that changes a table, and writes down what it did.
//!
//! In each transaction it notes the keys that it touched with the counter that truekeep numbers
//! changes from, and counts the transaction. After the commit it notes that count in a file beside,
//! on a disk that is never cut: what stands there was committed, as far as the application knows.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::Fault;
use crate::database;
use crate::draws::Draws;
use crate::law::{Touched, Truth};

/// Rows that are changed again and again.
const IDS: u64 = 400;

/// After a failure it opens the database anew, as applications do.
const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// A record as text: equal texts are equal records. Source and mirror are asked the same.
pub const RECORD: &str = "json_array(code, body, quote(size))";

/// How the application keeps its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeping {
    /// The journal mode.
    pub journal: &'static str,
    /// The `synchronous` setting.
    pub synchronous: &'static str,
}

impl Keeping {
    /// Every way that is stormed.
    pub const ALL: [Self; 4] = [
        Self { journal: "wal", synchronous: "NORMAL" },
        Self { journal: "wal", synchronous: "FULL" },
        Self { journal: "delete", synchronous: "NORMAL" },
        Self { journal: "delete", synchronous: "FULL" },
    ];

    /// How many committed transactions a power cut may undo; none if SQLite promises nothing.
    /// With a rollback journal FULL leaves the removal of the last journal to the file system.
    pub fn undone_max(self) -> Option<u64> {
        match (self.journal, self.synchronous) {
            ("wal", "FULL") => Some(0),
            (_, "FULL") => Some(1),
            _ => None,
        }
    }
}

/// Makes the application's tables.
pub fn make(path: &Path, keeping: Keeping) -> Result<(), Fault> {
    let db = open(path, keeping)?;
    db.execute_batch(
        "CREATE TABLE things (id INTEGER PRIMARY KEY, code TEXT UNIQUE, body TEXT, size REAL);
         CREATE TABLE touched (id INTEGER PRIMARY KEY, token INTEGER NOT NULL);
         CREATE TABLE written (n INTEGER NOT NULL);
         INSERT INTO written VALUES (0);",
    )?;
    Ok(())
}

/// Opens the application's database as the application does.
pub fn open(path: &Path, keeping: Keeping) -> Result<Connection, Fault> {
    let db = database::open(path)?;
    db.pragma_update(None, "journal_mode", keeping.journal)?;
    db.pragma_update(None, "synchronous", keeping.synchronous)?;
    Ok(db)
}

/// Reads what the application says, in one snapshot.
pub fn truth(path: &Path) -> Result<Truth, Fault> {
    let mut db = database::open(path)?;
    let snapshot = db.transaction()?;
    let newest = counter(&snapshot)?;
    let sql = format!(
        "SELECT CAST(touched.id AS TEXT), token, CASE WHEN things.id IS NULL THEN NULL ELSE {RECORD} END
         FROM touched LEFT JOIN things USING (id)"
    );
    let mut statement = snapshot.prepare(&sql)?;
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, Touched { token: row.get(1)?, row: row.get(2)? })))?;
    let keys = rows.collect::<Result<_, _>>()?;
    Ok(Truth { newest, keys })
}

/// Writes once, as whoever comes after a killed application does. A commit that had reached the log
/// but not its index is seen by nobody; it is overwritten now, and would else come to light when the
/// log is read anew. SQLite writes nothing for a value that stays as it is.
pub fn decide(path: &Path) -> Result<(), Fault> {
    database::open(path)?.execute("UPDATE written SET n = n + 1", [])?;
    Ok(())
}

/// How many transactions the database knows of.
pub fn written(path: &Path) -> Result<u64, Fault> {
    let db = database::open(path)?;
    Ok(db.query_row("SELECT n FROM written", [], |row| row.get(0))?)
}

/// The count that the application noted last; none if it noted nothing.
pub fn noted(path: &Path) -> Result<Option<u64>, Fault> {
    let text = std::fs::read_to_string(path)?;
    // A line that was cut off by a kill is no note.
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    Ok(whole.lines().last().map(str::parse).transpose()?)
}

/// What the process is told.
#[derive(Debug)]
pub struct Orders {
    /// The database.
    pub database: PathBuf,
    /// Where it notes what it committed.
    pub notes: PathBuf,
    /// How it keeps the database.
    pub keeping: Keeping,
    /// Bytes that a body has at most.
    pub body_max: u64,
    /// Its draws.
    pub seed: u64,
}

impl Orders {
    /// As the words of a command line.
    pub fn words(&self) -> Vec<String> {
        vec![
            self.database.display().to_string(),
            self.notes.display().to_string(),
            self.keeping.journal.to_owned(),
            self.keeping.synchronous.to_owned(),
            self.body_max.to_string(),
            self.seed.to_string(),
        ]
    }

    /// From the words of a command line.
    pub fn parse(words: &[String]) -> Result<Self, Fault> {
        let [database, notes, journal, synchronous, body_max, seed] = words else {
            return Err(format!("an application is told six words, not {words:?}").into());
        };
        let keeping = Keeping::ALL
            .into_iter()
            .find(|keeping| keeping.journal == journal && keeping.synchronous == synchronous);
        Ok(Self {
            database: database.into(),
            notes: notes.into(),
            keeping: keeping.ok_or("no such way to keep a database")?,
            body_max: body_max.parse()?,
            seed: seed.parse()?,
        })
    }

    /// Writes until it is killed.
    pub fn follow(&self) -> Result<(), Fault> {
        let mut notes = File::create(&self.notes)?;
        let mut draws = Draws::of(self.seed, "application", 0);
        loop {
            // A disk that is full, or was cut, or a file that was restored: it begins again.
            let Ok(db) = open(&self.database, self.keeping) else {
                std::thread::sleep(AGAIN_AFTER);
                continue;
            };
            while let Ok(count) = transact(&db, &mut draws, self.body_max) {
                if let Some(count) = count {
                    writeln!(notes, "{count}")?;
                }
                // SQLite's lock is not fair: an application that never pauses lets nobody else in.
                std::thread::sleep(draws.millis(0, 4));
            }
            std::thread::sleep(AGAIN_AFTER);
        }
    }
}

/// One transaction; its count, or none if it was rolled back.
pub fn transact(db: &Connection, draws: &mut Draws, body_max: u64) -> Result<Option<u64>, Fault> {
    let rows = if draws.one_in(20) { 100 } else { 1 + draws.below(8) };
    let transaction = Transaction::new_unchecked(db, TransactionBehavior::Immediate)?;
    let mut touched = BTreeSet::new();
    for _ in 0..rows {
        change(&transaction, draws, body_max, &mut touched)?;
    }
    let token = counter(&transaction)?;
    for id in touched {
        transaction
            .execute("REPLACE INTO touched (id, token) VALUES (?1, ?2)", params![id, token])?;
    }
    let sql = "UPDATE written SET n = n + 1 RETURNING n";
    let count = transaction.query_row(sql, [], |row| row.get(0))?;
    if draws.one_in(10) {
        transaction.rollback()?;
        return Ok(None);
    }
    transaction.commit()?;
    Ok(Some(count))
}

fn counter(db: &Connection) -> rusqlite::Result<u64> {
    db.query_row("SELECT newest FROM truekeep_counter_things", [], |row| row.get(0))
}

/// One change; the keys that it touched or may have touched.
fn change(
    db: &Connection,
    draws: &mut Draws,
    body_max: u64,
    touched: &mut BTreeSet<u64>,
) -> Result<(), Fault> {
    let id = draws.below(IDS);
    let code = format!("c{}", draws.below(IDS));
    let length = usize::try_from(draws.below(body_max))?;
    let body = format!("körper {} \u{1F333} {}", draws.next(), "x".repeat(length));
    let size = draws.below(1 << 20) as f64 / 64.0;
    let to = draws.below(IDS);
    touched.extend([id, to]);
    // Another row may hold the code, and goes with it.
    let holder = "SELECT id FROM things WHERE code = ?1";
    touched.extend(db.query_row(holder, [&code], |row| row.get::<_, u64>(0)).optional()?);
    let sql = match draws.below(8) {
        0 | 1 => "REPLACE INTO things (id, code, body, size) VALUES (?1, ?2, ?3, ?4)",
        2 => "INSERT OR IGNORE INTO things (id, code, body, size) VALUES (?1, ?2, ?3, ?4)",
        3 => "UPDATE things SET body = ?3, size = ?4 WHERE id = ?1",
        4 => "UPDATE OR REPLACE things SET code = ?2, body = ?3, size = ?4 WHERE id = ?1",
        5 => "DELETE FROM things WHERE id = ?1",
        // The key changes, onto one that may be taken.
        6 => "UPDATE OR REPLACE things SET id = ?5 WHERE id = ?1",
        _ => {
            "INSERT INTO things (id, code, body, size) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO UPDATE SET body = excluded.body
             ON CONFLICT (code) DO UPDATE SET size = excluded.size"
        }
    };
    // Every statement takes all five, so that they are bound alike.
    let mut statement = db.prepare_cached(sql)?;
    let values = params![id, code, body, size, to];
    let wanted = statement.parameter_count();
    for (at, value) in values.iter().take(wanted).enumerate() {
        statement.raw_bind_parameter(at + 1, value)?;
    }
    statement.raw_execute()?;
    Ok(())
}

#[cfg(test)]
mod tests;
