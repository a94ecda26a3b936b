//! The one table from Postgres's SQLSTATEs to failure classes and codes, with a reason per row.

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

/// How far a transaction had come when it failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It had not been told to commit: the server undoes what it did, whatever became of the
    /// connection.
    Working,
    /// It had been told to commit, and no answer came, or a strange one.
    Committing,
}

/// Why work in a transaction failed.
#[derive(Debug)]
pub enum Failure {
    /// Postgres said so, or the connection did.
    Postgres(sqlx::Error),
    /// We said so.
    Port(PortError),
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Postgres(error)
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        Self::Port(error)
    }
}

impl Failure {
    /// The SQLSTATE, if the server gave one.
    pub fn state(&self) -> Option<String> {
        match self {
            Self::Postgres(error) => says(error),
            Self::Port(_) => None,
        }
    }
}

/// The SQLSTATE of a failure, if the server gave one.
pub fn says(error: &sqlx::Error) -> Option<String> {
    error.as_database_error()?.code().map(std::borrow::Cow::into_owned)
}

impl Role {
    pub(crate) fn unavailable(self) -> Code {
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

    /// Nothing is wrong with what was asked, and it was not done.
    fn hindered(self) -> Code {
        match self {
            Self::Ledger => Code::LEDGER_UNAVAILABLE,
            Self::Source | Self::Sink => self.failed(),
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

/// Classifies a failure of the server or of the connection to it. Whatever fails before a commit is
/// asked for did not happen; only what fails then is `Unknown`.
pub fn classify(
    role: Role,
    operation: &'static str,
    reach: Reach,
    error: sqlx::Error,
) -> PortError {
    use FailureClass::{Halted, Retry, Terminal, Unknown};
    // The connection went: the server rolls back what was not told to commit.
    let gone = if reach == Reach::Working { Retry } else { Unknown };
    let (class, code) = match &error {
        sqlx::Error::Database(database) => {
            let state = database.code().unwrap_or_default();
            by_state(role, &state, gone)
        }
        // A certificate that does not fit is an operator's.
        sqlx::Error::Tls(_) => (Halted, role.unavailable()),
        // So it is where TLS tells of it in these words, before anything was sent.
        sqlx::Error::Io(error)
            if reach == Reach::Working && error.kind() == std::io::ErrorKind::InvalidData =>
        {
            (Halted, role.unavailable())
        }
        // The server is down, restarts, or the network is cut.
        sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed => (gone, role.unavailable()),
        // The answer stopped in its middle, or was none of Postgres's.
        sqlx::Error::Protocol(_) | sqlx::Error::BeginFailed => (gone, role.unavailable()),
        // All our connections are at work, or the server is slow to accept one.
        sqlx::Error::PoolTimedOut => (Retry, role.unavailable()),
        // We are being stopped.
        sqlx::Error::PoolClosed => (Retry, role.unavailable()),
        // An address that is none is an operator's too.
        sqlx::Error::Configuration(_) => (Halted, Code::CONFIG_INVALID),
        // Trouble of the binding itself: the same call fails again.
        sqlx::Error::ColumnDecode { .. }
        | sqlx::Error::ColumnNotFound(_)
        | sqlx::Error::ColumnIndexOutOfBounds { .. }
        | sqlx::Error::Decode(_)
        | sqlx::Error::Encode(_)
        | sqlx::Error::TypeNotFound { .. }
        | sqlx::Error::RowNotFound => (Terminal, role.failed()),
        _ => (Unknown, role.failed()),
    };
    PortError::new(operation, class, code).caused_by(error)
}

/// By SQLSTATE, the whole of it or its first two characters. `gone` is the class of what the server
/// ended by going down.
fn by_state(role: Role, state: &str, gone: FailureClass) -> (FailureClass, Code) {
    use FailureClass::{Halted, Retry, Terminal, Unknown};
    match (state.get(..2).unwrap_or_default(), state) {
        // Another transaction holds the lock for longer than ours may wait.
        (_, "55P03") => (Retry, role.locked()),
        // Of two that waited for each other ours was given up.
        (_, "40P01") => (Retry, role.locked()),
        // A concurrent change came first; the same call sees it.
        ("40", "40001" | "40002") => (Retry, role.locked()),
        // The server itself does not know whether the transaction was committed.
        (_, "40003" | "08007") => (Unknown, role.unavailable()),
        // The statement took longer than it may, or an operator stopped it.
        (_, "57014") => (Retry, role.hindered()),
        // The server goes down, comes up, or ended an idle connection.
        ("57", "57P01" | "57P02" | "57P03" | "57P05") => (gone, role.unavailable()),
        // Our transaction stood idle for longer than it may.
        (_, "25P03" | "25P04") => (Retry, role.unavailable()),
        // The server became a standby, or its disk is full and somebody made it read-only.
        (_, "25006") => (Retry, role.unavailable()),
        // The connection went.
        ("08", _) => (gone, role.unavailable()),
        // Disk, memory and connections run out and come back.
        ("53", _) => (Retry, role.unavailable()),
        // A file that cannot be read or written: passes, or an operator mends it.
        ("58", _) => (gone, role.unavailable()),
        // Damage needs an operator.
        (_, "XX001" | "XX002") => (Halted, role.corrupt()),
        // Who we are, and which database there is, is an operator's.
        ("28", _) | (_, "3D000") => (Halted, role.unavailable()),
        // A right was taken away; a policy would hide rows (row_security is off, so it is told).
        (_, "42501") => (Halted, role.hindered()),
        // The same statement can never succeed: data, constraints, syntax, what is not there.
        ("0A" | "21" | "22" | "23" | "2F" | "34" | "38" | "39" | "3F" | "42" | "44" | "P0", _) => {
            (Terminal, role.failed())
        }
        // A table is in use, or not ready for what is asked.
        ("55", _) => (Retry, role.locked()),
        // Whatever else the server says may have happened.
        _ => (Unknown, role.failed()),
    }
}
