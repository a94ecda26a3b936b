//! SQLite files: copies beside whoever writes them, restores, soundness.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::backup::Backup;

use crate::Fault;

/// How long a lock is waited for.
const BUSY: Duration = Duration::from_secs(60);

/// Opens a file.
pub fn open(path: &Path) -> Result<Connection, Fault> {
    let db = Connection::open(path)?;
    db.busy_timeout(BUSY)?;
    Ok(db)
}

/// Copies one file's content over another's, in one transaction of the other. As a backup it takes
/// a snapshot; as a restore its readers see it like a commit.
pub fn copy(from: &Path, to: &Path) -> Result<(), Fault> {
    let from = open(from)?;
    let mut to = open(to)?;
    // All pages in one step: nobody writes in between.
    let pages = i32::MAX;
    Backup::new(&from, &mut to)?.run_to_completion(pages, Duration::from_millis(5), None)?;
    Ok(())
}

/// Puts a copy in a file's place; nobody has it open, or who has goes on with the old one.
pub fn replace(path: &Path, from: &Path) -> Result<(), Fault> {
    for beside in ["-wal", "-shm", "-journal"] {
        let file = with_suffix(path, beside);
        if file.exists() {
            std::fs::remove_file(file)?;
        }
    }
    let new = with_suffix(path, "-new");
    std::fs::copy(from, &new)?;
    Ok(std::fs::rename(new, path)?)
}

/// Says whether a file is sound.
pub fn verify(path: &Path) -> Result<(), Fault> {
    let said: String = open(path)?.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if said == "ok" { Ok(()) } else { Err(format!("{} is damaged: {said}", path.display()).into()) }
}

/// Reads, and goes on reading: a write-ahead log cannot be begun anew meanwhile.
pub fn pin(path: &Path) -> Result<Connection, Fault> {
    let db = open(path)?;
    db.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
    Ok(db)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
