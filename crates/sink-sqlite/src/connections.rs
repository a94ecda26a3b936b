//! What is open of a mirror's file: one connection writes, another reads beside it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::sync::Mutex;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_sqlite::{Access, Database, FileIdentity, Options, Role};

/// What is open, and the file that it is open on.
#[derive(Debug, Clone)]
pub(crate) struct Connections {
    file: Option<FileIdentity>,
    pub(crate) writer: Database,
    pub(crate) reader: Database,
}

impl Connections {
    async fn open(path: &Path, busy: Duration) -> Result<Self, PortError> {
        let options = Options { role: Role::Sink, access: Access::Own, busy };
        // The writer first: it makes the file.
        let writer = Database::open(path, options).await?;
        let reader = Database::open(path, Options { access: Access::ReadOnly, ..options }).await?;
        Ok(Self { file: FileIdentity::at(path), writer, reader })
    }
}

/// A mirror's file, by its path.
#[derive(Debug)]
pub(crate) struct MirrorFile {
    path: PathBuf,
    busy: Duration,
    connections: Mutex<Connections>,
}

impl MirrorFile {
    /// Opens the file, which is made if it is not there.
    pub(crate) async fn open(path: &Path, busy: Duration) -> Result<Self, PortError> {
        let connections = Mutex::new(Connections::open(path, busy).await?);
        Ok(Self { path: path.into(), busy, connections })
    }

    /// The connections, opened again if the path has another file now. Only for those who look
    /// at the mirror anew: a batch must not go on in a file that may be older.
    pub(crate) async fn looked_anew(&self) -> Result<Connections, PortError> {
        let mut connections = self.connections.lock().await;
        if connections.file != FileIdentity::at(&self.path) {
            *connections = Connections::open(&self.path, self.busy).await?;
        }
        Ok(connections.clone())
    }

    /// The connections, if the path has the file still that they are open on.
    pub(crate) async fn unchanged(
        &self,
        operation: &'static str,
    ) -> Result<Connections, PortError> {
        let connections = self.connections.lock().await;
        if connections.file == FileIdentity::at(&self.path) {
            return Ok(connections.clone());
        }
        let error = PortError::new(operation, FailureClass::Halted, Code::SINK_WENT_BACK);
        Err(error.detail(format!("{} was replaced or removed", self.path.display())))
    }
}
