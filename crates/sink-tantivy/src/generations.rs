//! Generations of an index: the first is the folder itself, each other one a folder in it, and a
//! small file beside them names the one that readers see.
//!
//! A swap replaces that file by renaming another over it, and moves nothing else: readers look at
//! it before each search, and writers never do.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tantivy::Directory;
use tantivy::directory::{INDEX_WRITER_LOCK, META_LOCK};
use tokio::sync::oneshot;
use truekeep_core::Generation;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Generations, Served, Sink, Survey, Swap, Swapped, generations};

use crate::directory::{IndexDirectory, META, META_BESIDE, is_of_a_segment};
use crate::failure::Failure;
use crate::index::busy;
use crate::keeper::gone;
use crate::sink::TantivySink;
use crate::spec::IndexSpec;

const OPEN: &str = "look at generations";
const SWAP: &str = "swap generations";
const DISCARD: &str = "remove a generation";

/// Names the generation that readers see; without it that is the first.
const SERVED: &str = "served.json";
/// Where it is written before it is renamed; the lock keeps it one writer's.
const SERVED_BESIDE: &str = ".tmp-served.json";
/// The kernel's lock on it is held by whoever swaps or removes.
const SWAP_LOCK: &str = ".truekeep-swap.lock";
/// Before the number in the name of a generation's folder.
const PREFIX: &str = "generation-";
/// So many readers may come too late for a generation that is removed, one after the other: each
/// had read its name before, and makes one lock.
const LATE_READERS_MAX: usize = 1_000;
/// Counts the forms of the file.
const FORM: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Note {
    truekeep: u32,
    #[serde(flatten)]
    served: Served,
}

/// One change to the files of an index, on disk or not: a crash comes between any two.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Makes the file or writes it anew.
    Write(PathBuf, Vec<u8>),
    /// Brings to disk what a file holds, or which names a folder has.
    Sync(PathBuf),
    Rename(PathBuf, PathBuf),
    /// Removes a file, if it is there.
    Remove(PathBuf),
    /// Removes a folder, if it is there, with the locks of readers that come too late: whoever has
    /// read its name before it is gone makes one in it before finding no `meta.json`.
    RemoveFolder(PathBuf),
}

impl Step {
    fn take(&self) -> io::Result<()> {
        let there = |removed: io::Result<()>| match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        };
        match self {
            Self::Write(file, data) => std::fs::write(file, data),
            Self::Sync(path) => File::open(path)?.sync_all(),
            Self::Rename(from, to) => std::fs::rename(from, to),
            Self::Remove(file) => there(std::fs::remove_file(file)),
            Self::RemoveFolder(folder) => there(remove_with_late_locks(folder)),
        }
    }
}

fn remove_with_late_locks(folder: &Path) -> io::Result<()> {
    let lock = folder.join(&META_LOCK.filepath);
    for _ in 0..LATE_READERS_MAX {
        match std::fs::remove_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            removed => return removed,
        }
        match std::fs::remove_file(&lock) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    std::fs::remove_dir(folder)
}

/// The folder of a generation.
pub(crate) fn folder_of(folder: &Path, generation: Generation) -> PathBuf {
    if generation == Served::FIRST.generation {
        return folder.to_owned();
    }
    folder.join(format!("{PREFIX}{generation}"))
}

/// Whether a folder is that of a generation in the folder of an index.
pub(crate) fn is_of_a_generation(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    name.and_then(of_name).is_some()
}

/// Whether a name in the folder of an index is one of those that generations need.
pub(crate) fn is_of_generations(name: &str) -> bool {
    name == SERVED || name == SWAP_LOCK || of_name(name).is_some()
}

/// The generation of a folder's name.
fn of_name(name: &str) -> Option<Generation> {
    let number = name.strip_prefix(PREFIX)?;
    let generation = Generation::new(number.parse().ok()?);
    let is_its_name = generation.to_string() == number && generation != Served::FIRST.generation;
    is_its_name.then_some(generation)
}

/// What readers of a folder see.
pub(crate) fn served(folder: &Path) -> Result<Served, Failure> {
    let text = match std::fs::read(folder.join(SERVED)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Served::FIRST),
        read => read?,
    };
    #[derive(Deserialize)]
    struct Form {
        truekeep: u32,
    }
    let unreadable = |code, detail: String| {
        let error = PortError::new(OPEN, FailureClass::Halted, code);
        Failure::from(error.detail(format!("{SERVED} of {}: {detail}", folder.display())))
    };
    match serde_json::from_slice::<Form>(&text) {
        Ok(Form { truekeep: FORM }) => {}
        Ok(Form { truekeep }) => {
            let detail = format!("it has form {truekeep}, this program's is {FORM}");
            return Err(unreadable(Code::INDEX_VERSION, detail));
        }
        Err(error) => return Err(unreadable(Code::INDEX_CORRUPT, error.to_string())),
    }
    let note: Note = serde_json::from_slice(&text)
        .map_err(|error| unreadable(Code::INDEX_CORRUPT, error.to_string()))?;
    Ok(note.served)
}

fn is_whole(folder: &Path) -> io::Result<bool> {
    folder.join(META).try_exists()
}

fn survey(folder: &Path) -> Result<Survey, Failure> {
    let mut held = Vec::new();
    for name in names(folder)? {
        // What a crash left of the first one is files of segments without a `meta.json`.
        if name == META || is_of_a_segment(&name) {
            held.push(Served::FIRST.generation);
        }
        held.extend(of_name(&name));
    }
    held.sort_unstable();
    held.dedup();
    Ok(Survey { served: served(folder)?, held })
}

/// The names in a folder; none if it is not there.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let files = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let mut names = Vec::new();
    for file in files {
        // Ours are all UTF-8.
        names.extend(file?.file_name().into_string());
    }
    names.sort_unstable();
    Ok(names)
}

/// Nobody else swaps or removes while the answer lives.
fn alone(folder: &Path) -> Result<File, Failure> {
    let options = File::options().create(true).truncate(false).write(true).to_owned();
    let file = options.open(folder.join(SWAP_LOCK))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let error = PortError::new(SWAP, FailureClass::Retry, Code::SINK_LOCKED);
            Err(error.detail("another program swaps generations").into())
        }
        Err(TryLockError::Error(error)) => Err(error.into()),
    }
}

/// The steps of a swap, or its answer if there are none.
fn steps_of_swap(folder: &Path, swap: &Swap) -> Result<Result<Vec<Step>, Swapped>, Failure> {
    match swap.judge(served(folder)?) {
        Err(served) => return Ok(Err(Swapped::Conflict(served))),
        Ok(false) => return Ok(Err(Swapped::Done)),
        Ok(true) => {}
    }
    if !is_whole(&folder_of(folder, swap.to))? {
        return Err(generations::missing(swap.to).into());
    }
    let served = Served { generation: swap.to, swap: swap.number };
    let note = serde_json::to_vec(&Note { truekeep: FORM, served }).expect("numbers are JSON");
    let (beside, named) = (folder.join(SERVED_BESIDE), folder.join(SERVED));
    Ok(Ok(vec![
        Step::Write(beside.clone(), note),
        // What the name will mean is on disk before the name is.
        Step::Sync(beside.clone()),
        Step::Rename(beside, named),
        Step::Sync(folder.to_owned()),
    ]))
}

fn swap(folder: &Path, swap: &Swap) -> Result<Swapped, Failure> {
    if !folder.try_exists()? {
        return Err(generations::missing(swap.to).into());
    }
    let _alone = alone(folder)?;
    match steps_of_swap(folder, swap)? {
        Err(Swapped::Done) => {
            // Whoever did it may have died before it was on disk.
            Step::Sync(folder.to_owned()).take()?;
            Ok(Swapped::Done)
        }
        Err(conflict) => Ok(conflict),
        Ok(steps) => {
            steps.iter().try_for_each(Step::take)?;
            Ok(Swapped::Done)
        }
    }
}

/// The steps of a removal: what a swap or a reader goes by is gone first, for good.
fn steps_of_removal(folder: &Path, generation: Generation) -> Result<Vec<Step>, Failure> {
    if served(folder)?.generation == generation {
        return Err(generations::served(generation).into());
    }
    let own = folder_of(folder, generation);
    let is_first = own == folder;
    if !own.try_exists()? {
        // Whoever removed it may have died before that was on disk.
        return Ok(vec![Step::Sync(folder.to_owned())]);
    }
    let mut steps = vec![Step::Remove(own.join(META)), Step::Sync(own.clone())];
    let rest = names(&own)?.into_iter().filter(|name| {
        // The first one's folder is everybody's, and so are the locks in it.
        name != META && (!is_first || name == META_BESIDE || is_of_a_segment(name))
    });
    steps.extend(rest.map(|name| Step::Remove(own.join(name))));
    if !is_first {
        steps.push(Step::RemoveFolder(own));
    }
    steps.push(Step::Sync(folder.to_owned()));
    Ok(steps)
}

fn discard(folder: &Path, generation: Generation) -> Result<(), Failure> {
    if !folder.try_exists()? {
        return Ok(());
    }
    let _alone = alone(folder)?;
    if served(folder)?.generation == generation {
        return Err(generations::served(generation).into());
    }
    let own = folder_of(folder, generation);
    let _quiet = if own.try_exists()? {
        let directory = IndexDirectory::open(&own)?;
        // Nobody writes it, and nobody has opened a part of it: readers that have it whole keep it.
        let writer = directory.acquire_lock(&INDEX_WRITER_LOCK).map_err(busy)?;
        Some((writer, directory.acquire_lock(&META_LOCK).map_err(busy)?))
    } else {
        None
    };
    Ok(steps_of_removal(folder, generation)?.iter().try_for_each(Step::take)?)
}

/// A full-text index with generations.
#[derive(Debug)]
pub struct TantivyGenerations {
    folder: PathBuf,
    spec: IndexSpec,
    /// One process writes an index, and so does one sink: whoever opens it again gets the same.
    open: Mutex<BTreeMap<Generation, Weak<TantivySink>>>,
}

impl TantivyGenerations {
    /// Names an index, whose folder is looked at later. A folder with an index in it is that of the
    /// first generation.
    ///
    /// # Errors
    /// Class Halted with `CONFIG_INVALID` if no such index can be.
    pub fn new(folder: &Path, spec: &IndexSpec) -> Result<Self, PortError> {
        spec.check()?;
        Ok(Self { folder: folder.into(), spec: spec.clone(), open: Mutex::default() })
    }

    /// Does work on files on a thread of its own. It is finished even if the caller stops waiting.
    async fn aside<T, F>(&self, operation: &'static str, work: F) -> Result<T, PortError>
    where
        T: Send + 'static,
        F: FnOnce(&Path) -> Result<T, Failure> + Send + 'static,
    {
        let folder = self.folder.clone();
        let (done, answer) = oneshot::channel();
        let work = move || {
            let worked = work(&folder).map_err(|failure| failure.classify(operation, &folder));
            let _ = done.send(worked);
        };
        let thread = std::thread::Builder::new().name("tantivy-generations".into());
        thread.spawn(work).map_err(|error| gone(operation).caused_by(error))?;
        answer.await.map_err(|_| gone(operation))?
    }
}

#[async_trait]
impl Generations for TantivyGenerations {
    async fn survey(&self) -> Result<Survey, PortError> {
        self.aside(OPEN, survey).await
    }

    async fn open(&self, generation: Generation) -> Result<Arc<dyn Sink>, PortError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, sink| sink.strong_count() > 0);
        if let Some(sink) = open.get(&generation).and_then(Weak::upgrade) {
            return Ok(sink);
        }
        let sink = Arc::new(TantivySink::new(&folder_of(&self.folder, generation), &self.spec)?);
        open.insert(generation, Arc::downgrade(&sink));
        Ok(sink)
    }

    async fn swap(&self, swap: &Swap) -> Result<Swapped, PortError> {
        let swap = *swap;
        self.aside(SWAP, move |folder| self::swap(folder, &swap)).await
    }

    async fn discard(&self, generation: Generation) -> Result<(), PortError> {
        self.aside(DISCARD, move |folder| discard(folder, generation)).await
    }
}

#[cfg(test)]
mod tests;
