//! The one table from SQLite's result codes to failure classes and codes, with a reason per row.

use rusqlite::ffi::{self, ErrorCode};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};

/// What a database is to us: decides which code a failure carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The worker's own memory.
    Ledger,
    /// The database of record.
    Source,
    /// A derived store.
    Sink,
}

/// Why work on a connection failed.
#[derive(Debug)]
pub enum Failure {
    /// SQLite said so.
    Sqlite(rusqlite::Error),
    /// We said so.
    Port(PortError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        Self::Port(error)
    }
}

impl Role {
    /// The code of a file that cannot be reached.
    pub fn unavailable(self) -> Code {
        match self {
            Self::Ledger => Code::LEDGER_UNAVAILABLE,
            Self::Source => Code::SOURCE_UNAVAILABLE,
            Self::Sink => Code::SINK_UNAVAILABLE,
        }
    }

    fn locked(self) -> Code {
        match self {
            Self::Ledger => Code::LEDGER_LOCKED,
            Self::Source => Code::SOURCE_LOCKED,
            Self::Sink => Code::SINK_UNAVAILABLE,
        }
    }

    fn corrupt(self) -> Code {
        match self {
            Self::Ledger => Code::LEDGER_CORRUPT,
            Self::Source => Code::SOURCE_CORRUPT,
            Self::Sink => Code::SINK_UNAVAILABLE,
        }
    }

    fn failed(self) -> Code {
        match self {
            Self::Ledger => Code::UNEXPECTED,
            Self::Source => Code::SOURCE_READ_FAILED,
            Self::Sink => Code::SINK_UNAVAILABLE,
        }
    }
}

/// Classifies SQLite's failure. A statement that fails rolls its transaction back here, so what
/// surely did not happen is most of it; only a failed commit of unknown cause is `Unknown`.
pub fn classify(role: Role, operation: &'static str, error: rusqlite::Error) -> PortError {
    use FailureClass::{Halted, Retry, Terminal, Unknown};
    let (class, code) = match error.sqlite_error().map(|e| (e.code, e.extended_code)) {
        // Another connection holds the lock; it will let go.
        Some((ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _)) => (Retry, role.locked()),
        // Space can be made; the transaction was rolled back.
        Some((ErrorCode::DiskFull, _)) => (Retry, role.unavailable()),
        // Memory may be free later.
        Some((ErrorCode::OutOfMemory, _)) => (Retry, role.unavailable()),
        // Work was cancelled by us.
        Some((ErrorCode::OperationInterrupted, _)) => (Retry, role.failed()),
        // A schema change between prepare and step that SQLite gave up on: prepare anew.
        Some((ErrorCode::SchemaChanged, _)) => (Retry, role.failed()),
        // A write to a synced file failed: what is on disk is not known.
        Some((ErrorCode::SystemIoFailure, extended)) if extended == ffi::SQLITE_IOERR_FSYNC => {
            (Unknown, role.unavailable())
        }
        // Storage trouble passes or is mended.
        Some((ErrorCode::SystemIoFailure, _)) => (Unknown, role.unavailable()),
        // Rights, paths and media are an operator's.
        Some((ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly, _)) => {
            (Halted, role.unavailable())
        }
        // A damaged file needs an operator.
        Some((ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase, _)) => (Halted, role.corrupt()),
        // The same statement can never succeed.
        Some((
            ErrorCode::TooBig
            | ErrorCode::TypeMismatch
            | ErrorCode::ConstraintViolation
            | ErrorCode::ParameterOutOfRange
            | ErrorCode::AuthorizationForStatementDenied,
            _,
        )) => (Terminal, role.failed()),
        // "SQL logic error": a statement that names what is not there, and the like.
        Some((ErrorCode::Unknown, ffi::SQLITE_ERROR)) => (Terminal, role.failed()),
        // Whatever else SQLite says may have happened.
        Some(_) => (Unknown, role.failed()),
        // Trouble of the binding itself (a wrong type, no row) never touched the database.
        None => (Terminal, role.failed()),
    };
    PortError::new(operation, class, code).caused_by(error)
}
