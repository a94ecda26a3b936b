//! A connection on a thread of its own: callers send it work and await the answer.

use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::oneshot;
use truekeep_core::failure::{FailureClass, PortError};

use crate::failure::{Failure, Role, classify};
use crate::patience;

/// Whether the file may be made or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read and write; made if it is not there. WAL with synchronous=FULL: what was committed
    /// survives a power cut.
    Own,
    /// Read and write a file that is there, in whatever journal mode it has.
    Guest,
    /// Read a file that is there.
    ReadOnly,
}

/// How a database is opened.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// What it is to us.
    pub role: Role,
    /// Whether it may be made or written.
    pub access: Access,
    /// How long a statement waits for another's lock.
    pub busy: Duration,
}

/// Between two tries to switch a file to WAL: a switch takes less.
const SWITCH_AGAIN_AFTER: Duration = Duration::from_millis(5);

type Work = Box<dyn FnOnce(&mut Connection) + Send>;

/// A connection on a thread of its own. Clones share it; the thread ends with the last of them.
#[derive(Debug, Clone)]
pub struct Database {
    role: Role,
    /// Told with every failure: a process has several databases open.
    path: Arc<Path>,
    work: mpsc::Sender<Work>,
}

impl Database {
    /// Opens a database file.
    ///
    /// # Errors
    /// A [`PortError`] that names the path and what is wrong with it: it is not there, a folder,
    /// not readable, not a database, locked.
    pub async fn open(path: &Path, options: Options) -> Result<Self, PortError> {
        let path: Arc<Path> = path.into();
        let of_thread = Arc::clone(&path);
        let (opened, answer) = oneshot::channel();
        let (work, jobs) = mpsc::channel::<Work>();
        let role = options.role;
        std::thread::Builder::new()
            .name(format!("sqlite-{role:?}").to_lowercase())
            .spawn(move || {
                let path = of_thread;
                let mut connection = match connect(&path, options) {
                    Ok(connection) => connection,
                    Err(error) => {
                        let _ = opened.send(Err(error.detail(path.display().to_string())));
                        return;
                    }
                };
                if opened.send(Ok(())).is_ok() {
                    for job in jobs {
                        job(&mut connection);
                    }
                }
            })
            .map_err(|error| gone(role, "start a database thread").caused_by(error))?;
        answer.await.map_err(|_| gone(role, "open a database"))??;
        Ok(Self { role, path, work })
    }

    /// Does work on the connection and awaits its answer. Work that was begun is finished even if
    /// the caller stops waiting.
    ///
    /// # Errors
    /// What the work answers, classified.
    pub async fn call<T, F>(&self, operation: &'static str, work: F) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> Result<T, Failure> + Send + 'static,
    {
        let (done, answer) = oneshot::channel();
        let job: Work = Box::new(move |connection| {
            let _ = done.send(work(connection));
        });
        self.work.send(job).map_err(|_| gone(self.role, operation))?;
        match answer.await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(Failure::Sqlite(error))) => {
                let path = self.path.display().to_string();
                Err(classify(self.role, operation, error).detail(path))
            }
            Ok(Err(Failure::Port(error))) => Err(error),
            Err(_) => Err(gone(self.role, operation)),
        }
    }
}

/// The thread is gone: work panicked on it. Whether it had an effect is not known.
fn gone(role: Role, operation: &'static str) -> PortError {
    let code = truekeep_core::code::Code::UNEXPECTED;
    PortError::new(operation, FailureClass::Unknown, code)
        .detail(format!("the {role:?} connection's thread has ended"))
}

fn connect(path: &Path, options: Options) -> Result<Connection, PortError> {
    const OPERATION: &str = "open a database";
    let fail = |error| classify(options.role, OPERATION, error);
    inspect(path, options)?;
    let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX
        | match options.access {
            Access::Own => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
            Access::Guest => OpenFlags::SQLITE_OPEN_READ_WRITE,
            Access::ReadOnly => OpenFlags::SQLITE_OPEN_READ_ONLY,
        };
    let connection = Connection::open_with_flags(path, flags).map_err(fail)?;
    patience::give(&connection, options.busy).map_err(fail)?;
    connection.set_prepared_statement_cache_capacity(128);
    if options.access == Access::Own {
        let mode = to_wal(&connection, options.busy).map_err(fail)?;
        if mode != "wal" {
            // Without WAL only EXTRA survives a power cut in every journal mode.
            connection.pragma_update(None, "synchronous", "EXTRA").map_err(fail)?;
            return Ok(connection);
        }
    }
    connection.pragma_update(None, "synchronous", "FULL").map_err(fail)?;
    // Reads one page, so that what is no database is told now.
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(fail)?;
    Ok(connection)
}

/// Switches a file to WAL; the mode that it then has. Of several processes that open a new file at
/// once, SQLite tells some that it is locked without waiting, as they might wait for each other.
/// Once one has switched it, there is nothing left to wait for.
fn to_wal(connection: &Connection, busy: Duration) -> rusqlite::Result<String> {
    let end = Instant::now() + busy;
    loop {
        let mode = connection.query_row("PRAGMA journal_mode = wal", [], |row| row.get(0));
        let locked = mode.as_ref().is_err_and(|error: &rusqlite::Error| {
            error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
        });
        if !locked || Instant::now() >= end {
            return mode;
        }
        std::thread::sleep(SWITCH_AGAIN_AFTER);
    }
}

/// Says what SQLite's "unable to open database file" leaves unsaid.
fn inspect(path: &Path, options: Options) -> Result<(), PortError> {
    let halted = |detail: String| {
        let code = classify(
            options.role,
            "open a database",
            rusqlite::Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN),
                Some(detail),
            ),
        );
        Err(code)
    };
    if path.is_dir() {
        return halted("the path is a folder".into());
    }
    if path.exists() {
        return Ok(());
    }
    if options.access != Access::Own {
        return halted("there is no such file".into());
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).map(PathBuf::from);
    match parent {
        Some(parent) if !parent.is_dir() => {
            halted(format!("there is no folder {}", parent.display()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
