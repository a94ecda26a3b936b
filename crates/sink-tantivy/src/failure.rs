//! The one table from tantivy's errors to failure classes and codes, with a reason per row.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tantivy::TantivyError;
use tantivy::directory::error::{LockError, OpenDirectoryError, OpenReadError, OpenWriteError};
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};

use crate::directory::REPLACED;

/// Why work on an index failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Tantivy said so.
    Tantivy(TantivyError),
    /// We said so.
    Port(PortError),
}

impl From<TantivyError> for Failure {
    fn from(error: TantivyError) -> Self {
        Self::Tantivy(error)
    }
}

impl From<OpenDirectoryError> for Failure {
    fn from(error: OpenDirectoryError) -> Self {
        Self::Tantivy(error.into())
    }
}

impl From<OpenReadError> for Failure {
    fn from(error: OpenReadError) -> Self {
        Self::Tantivy(error.into())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Tantivy(error.into())
    }
}

impl From<PortError> for Failure {
    fn from(error: PortError) -> Self {
        Self::Port(error)
    }
}

impl Failure {
    /// The failure as the port tells it.
    ///
    /// Only what `meta.json` names has happened, so what failed before it was replaced surely did
    /// not happen; whoever calls this in the middle of a commit says so itself.
    pub(crate) fn classify(self, operation: &'static str, folder: &Path) -> PortError {
        match self {
            Self::Port(error) => error,
            Self::Tantivy(error) => classify(operation, error).detail(folder.display().to_string()),
        }
    }
}

fn classify(operation: &'static str, error: TantivyError) -> PortError {
    use FailureClass::{Halted, Retry, Terminal, Unknown};
    let (class, code) = match &error {
        // Another program holds the writer's lock; it lets go when it ends or falls silent.
        TantivyError::LockFailure(LockError::LockBusy, _) => (Retry, Code::SINK_LOCKED),
        TantivyError::LockFailure(LockError::IoError(error), _) => of_io(error),
        TantivyError::IoError(error) => of_io(error),
        TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. }) => of_io(io_error),
        TantivyError::OpenWriteError(OpenWriteError::IoError { io_error, .. }) => of_io(io_error),
        TantivyError::OpenDirectoryError(OpenDirectoryError::IoError { io_error, .. }) => {
            of_io(io_error)
        }
        // Paths are an operator's.
        TantivyError::OpenDirectoryError(_) => (Halted, Code::SINK_UNAVAILABLE),
        // A file that the index names is gone: a reader may have come too late, a writer not.
        TantivyError::OpenReadError(OpenReadError::FileDoesNotExist(_)) => {
            (Halted, Code::INDEX_CORRUPT)
        }
        // Damage needs an operator.
        TantivyError::DataCorruption(_) | TantivyError::DeserializeError(_) => {
            (Halted, Code::INDEX_CORRUPT)
        }
        // So does an index that this version cannot read.
        TantivyError::IncompatibleIndex(_)
        | TantivyError::OpenReadError(OpenReadError::IncompatibleIndex(_))
        | TantivyError::MissingPlugin(_) => (Halted, Code::INDEX_VERSION),
        // Somebody else made the index between our look and our deed: look again.
        TantivyError::IndexAlreadyExists => (Retry, Code::SINK_UNAVAILABLE),
        // The schema is not what we checked, or we asked for what cannot be.
        TantivyError::SchemaError(_)
        | TantivyError::FieldNotFound(_)
        | TantivyError::InvalidArgument(_)
        | TantivyError::AggregationError(_)
        | TantivyError::IndexBuilderMissingArgument(_)
        | TantivyError::ConflictingPlugins(_)
        | TantivyError::UnexpectedPlugin(_) => (Terminal, Code::UNEXPECTED),
        // A thread of tantivy's ended and its cause was not kept by the folder.
        TantivyError::ErrorInThread(_)
        | TantivyError::SystemError(_)
        | TantivyError::OpenWriteError(_)
        | TantivyError::Poisoned
        | TantivyError::InternalError(_) => (Unknown, Code::SINK_UNAVAILABLE),
    };
    PortError::new(operation, class, code).caused_by(error)
}

fn of_io(error: &Arc<io::Error>) -> (FailureClass, Code) {
    use io::ErrorKind;
    match error.kind() {
        // Space can be made.
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            (FailureClass::Retry, Code::SINK_UNAVAILABLE)
        }
        // Memory and descriptors may be free later.
        ErrorKind::OutOfMemory | ErrorKind::Interrupted | ErrorKind::WouldBlock => {
            (FailureClass::Retry, Code::SINK_UNAVAILABLE)
        }
        // Ours: somebody put another index there.
        ErrorKind::StaleNetworkFileHandle if error.to_string() == REPLACED => {
            (FailureClass::Halted, Code::SINK_WENT_BACK)
        }
        // Rights, paths and media are an operator's.
        ErrorKind::PermissionDenied
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::NotADirectory
        | ErrorKind::NotFound => (FailureClass::Halted, Code::SINK_UNAVAILABLE),
        // What tantivy says of files that it cannot make sense of.
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof => {
            (FailureClass::Halted, Code::INDEX_CORRUPT)
        }
        // Storage trouble passes or is mended.
        _ => (FailureClass::Unknown, Code::SINK_UNAVAILABLE),
    }
}
