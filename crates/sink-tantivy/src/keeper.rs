//! The index on a thread of its own: callers send it work and await the answer.
//!
//! One process writes an index, so whoever has fallen silent lets go of it: another worker that took
//! the scope over can then write.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};

use crate::failure::Failure;
use crate::index::OpenIndex;
use crate::schema::Layout;

/// How long a silent writer keeps its lock and its memory: less than any lease, or else who takes a
/// scope over early is shut out for as long as it has it; and longer than the pauses of a busy source.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// The index, as the thread has it.
pub(crate) struct Keeper {
    pub folder: PathBuf,
    pub wanted: Layout,
    pub writer_bytes: usize,
    open: Option<OpenIndex>,
}

impl Keeper {
    pub(crate) fn new(folder: &Path, wanted: Layout, writer_bytes: usize) -> Self {
        Self { folder: folder.into(), wanted, writer_bytes, open: None }
    }

    /// The index as it is now; none if there is none.
    pub(crate) fn look(&mut self) -> Result<Option<&mut OpenIndex>, Failure> {
        let current = match &mut self.open {
            Some(open) => open.is_current()?,
            None => false,
        };
        if !current {
            // Dropped first: it may hold the writer's lock.
            self.open = None;
            self.open = OpenIndex::at(&self.folder, &self.wanted)?;
        }
        Ok(self.open.as_mut())
    }

    /// The index to write: what a writer has open, or what is there.
    pub(crate) fn writing(&mut self) -> Result<&mut OpenIndex, Failure> {
        let bytes = self.writer_bytes;
        if self.open.is_none() {
            self.look()?;
        }
        let Some(open) = &mut self.open else {
            let error = PortError::new("write a batch", FailureClass::Halted, Code::SINK_WENT_BACK);
            return Err(error.detail(format!("{} has no index", self.folder.display())).into());
        };
        open.begin(bytes)?;
        Ok(open)
    }

    /// The index that was opened, unless another is there now.
    pub(crate) fn unchanged(&self) -> bool {
        self.open.as_ref().is_some_and(OpenIndex::is_there)
    }

    /// Forgets what is open: it is read from disk next time.
    pub(crate) fn forget(&mut self) {
        self.open = None;
    }

    /// Lets go of the writer's lock and memory.
    fn rest(&mut self) {
        if self.open.as_ref().is_some_and(OpenIndex::is_written) {
            self.forget();
        }
    }

    pub(crate) fn opened(&self) -> Option<&OpenIndex> {
        self.open.as_ref()
    }
}

type Work = Box<dyn FnOnce(&mut Keeper) + Send>;

/// The thread of an index. It ends, and the lock is free, when this is dropped.
#[derive(Debug)]
pub(crate) struct KeeperThread {
    folder: Arc<Path>,
    work: Option<mpsc::Sender<Work>>,
    thread: Option<JoinHandle<()>>,
}

impl KeeperThread {
    pub(crate) fn start(mut keeper: Keeper) -> Result<Self, PortError> {
        let folder: Arc<Path> = keeper.folder.as_path().into();
        let (work, jobs) = mpsc::channel::<Work>();
        let serve = move || {
            loop {
                match jobs.recv_timeout(SILENCE_MAX) {
                    Ok(job) => job(&mut keeper),
                    Err(RecvTimeoutError::Timeout) => keeper.rest(),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        };
        let thread = std::thread::Builder::new().name("tantivy-sink".into()).spawn(serve);
        let thread = thread.map_err(|error| gone("start an index's thread").caused_by(error))?;
        Ok(Self { folder, work: Some(work), thread: Some(thread) })
    }

    /// Does work on the index and awaits its answer. Work that was begun is finished even if the
    /// caller stops waiting.
    ///
    /// # Errors
    /// What the work answers, classified. Work that panics has met damage: tantivy does not check
    /// what it reads.
    pub(crate) async fn call<T, F>(&self, operation: &'static str, work: F) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnOnce(&mut Keeper) -> Result<T, Failure> + Send + 'static,
    {
        let (done, answer) = oneshot::channel();
        let job: Work = Box::new(move |keeper| {
            let worked = catch_unwind(AssertUnwindSafe(|| work(keeper)));
            let _ = done.send(worked.unwrap_or_else(|panic| {
                keeper.forget();
                Err(damaged(operation, &*panic).into())
            }));
        });
        let sent = self.work.as_ref().map(|sender| sender.send(job));
        if !matches!(sent, Some(Ok(()))) {
            return Err(gone(operation));
        }
        let answered = answer.await.map_err(|_| gone(operation))?;
        answered.map_err(|failure| failure.classify(operation, &self.folder))
    }
}

impl Drop for KeeperThread {
    fn drop(&mut self) {
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // It ends with its work; a panic of it was answered.
            let _ = thread.join();
        }
    }
}

fn damaged(operation: &'static str, panic: &(dyn std::any::Any + Send)) -> PortError {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no reason given");
    let error = PortError::new(operation, FailureClass::Halted, Code::INDEX_CORRUPT);
    error.detail(truekeep_core::limits::bounded(text))
}

/// The thread is gone. Whether it had an effect is not known.
pub(crate) fn gone(operation: &'static str) -> PortError {
    PortError::new(operation, FailureClass::Unknown, Code::UNEXPECTED)
        .detail("the index's thread has ended")
}
