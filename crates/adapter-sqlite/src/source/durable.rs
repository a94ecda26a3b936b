//! Makes durable what a snapshot saw, before it is used.
//!
//! Invariant: S2. The snapshot begins first, then the file that holds its newest commits is synced.
//! In WAL mode that is the `-wal` file: SQLite itself syncs it before its content moves on. In the
//! rollback-journal modes it is the database file, and the folder, since a commit is the removal of
//! the journal. Closing any descriptor of the database file drops every POSIX lock this process
//! has on it, so that one is opened once and kept for the life of the process (X56).

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_sqlite::Failure;

/// Which file a path leads to: another one after it was replaced.
pub(super) type Identity = (u64, u64);

#[cfg(unix)]
fn identity_of(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

/// Elsewhere an open file cannot be replaced, and closing one drops no locks.
#[cfg(not(unix))]
fn identity_of(_: &Metadata) -> Identity {
    (0, 0)
}

/// The file that a path leads to.
///
/// # Errors
/// `SOURCE_UNAVAILABLE` if there is none.
pub(super) fn identity(path: &Path) -> Result<Identity, PortError> {
    std::fs::metadata(path).map(|metadata| identity_of(&metadata)).map_err(|error| {
        PortError::new("find the database", FailureClass::Halted, Code::SOURCE_UNAVAILABLE)
            .detail(path.display().to_string())
            .caused_by(error)
    })
}

/// Descriptors of database files, never closed.
static KEPT: Mutex<BTreeMap<(PathBuf, Identity), Arc<File>>> = Mutex::new(BTreeMap::new());

/// What one connection's snapshots need to be durable.
#[derive(Debug)]
pub(super) struct Durable {
    path: PathBuf,
    identity: Identity,
    /// The connection's count of others' commits at its last snapshot that was synced.
    synced: Mutex<Option<i64>>,
}

impl Durable {
    pub fn of(path: &Path, identity: Identity) -> Self {
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        Self { path, identity, synced: Mutex::new(None) }
    }

    /// Makes durable what the open transaction of `connection` sees. Free if nobody has committed
    /// since the last time: the count is that of the snapshot, and was noted after its sync.
    pub fn settle(&self, connection: &Connection) -> Result<(), Failure> {
        let mut pragma = connection.prepare_cached("PRAGMA main.data_version")?;
        let commits: i64 = pragma.query_row([], |row| row.get(0))?;
        let mut synced = self.synced.lock().expect("no holder of the lock panics");
        if *synced == Some(commits) {
            return Ok(());
        }
        let mut pragma = connection.prepare_cached("PRAGMA main.journal_mode")?;
        let mode: String = pragma.query_row([], |row| row.get(0))?;
        let done = if mode == "wal" { self.sync_wal() } else { self.sync_database() };
        done.map_err(|error| {
            PortError::new("sync the source", FailureClass::Retry, Code::SOURCE_UNAVAILABLE)
                .detail(self.path.display().to_string())
                .caused_by(error)
        })?;
        *synced = Some(commits);
        Ok(())
    }

    /// Without a `-wal` file everything is in the database, which SQLite synced before it let go.
    fn sync_wal(&self) -> std::io::Result<()> {
        let mut wal = self.path.clone().into_os_string();
        wal.push("-wal");
        match File::open(wal) {
            Ok(file) => file.sync_data(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn sync_database(&self) -> std::io::Result<()> {
        let mut kept = KEPT.lock().expect("no holder of the lock panics");
        let file = match kept.entry((self.path.clone(), self.identity)) {
            std::collections::btree_map::Entry::Occupied(entry) => Arc::clone(entry.get()),
            std::collections::btree_map::Entry::Vacant(entry) => {
                Arc::clone(entry.insert(Arc::new(File::open(&self.path)?)))
            }
        };
        drop(kept);
        file.sync_data()?;
        match self.path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}
