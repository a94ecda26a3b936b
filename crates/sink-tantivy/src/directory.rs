//! The folder of an index, as tantivy uses it and as a sink has to.
//!
//! Five things are done otherwise than in tantivy's own:
//! - `meta.json` is on disk, its name too, when it was written: a commit that returned is confirmed.
//! - Small files are synced side by side, with the folder and the next `meta.json`, when that is
//!   about to name them: one after another, a commit of a few records waits for the disk a dozen
//!   times, and so it does twice.
//! - `meta.json` is replaced only if it is still the one that we know: a folder that was restored
//!   under a running writer is noticed by whatever would overwrite it, a merge included.
//! - The list of files to clean up is the folder itself. A list of its own is synced for each file,
//!   and is behind after a crash.
//! - The first trouble of input and output is kept: tantivy tells only that a thread ended.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tantivy::Directory;
use tantivy::directory::error::{
    DeleteError, LockError, OpenDirectoryError, OpenReadError, OpenWriteError,
};
use tantivy::directory::{
    AntiCallToken, DirectoryLock, FileHandle, Lock, META_LOCK, MmapDirectory, TerminatingWrite,
    WatchCallback, WatchHandle, WritePtr,
};

use crate::generations::is_of_generations;

/// What tells one `meta.json` from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MetaIdentity {
    #[cfg(unix)]
    file: (u64, u64),
    modified: Option<std::time::SystemTime>,
    length: u64,
}

pub(crate) const META: &str = "meta.json";
/// Where `meta.json` is written before it is renamed; the lock keeps it one writer's.
pub(crate) const META_BESIDE: &str = ".tmp-meta.json";
const MANAGED: &str = ".managed.json";

/// The endings of the files of a segment.
const ENDINGS: &[&str] =
    &["term", "idx", "pos", "store", "store.temp", "fast", "fieldnorm", "temp", "del"];

/// Bytes of a file that is synced by whoever wrote it: a commit must not wait for a large merge's.
const SYNCED_ALONE_BYTES: usize = 1 << 20;

/// The folder of an index.
#[derive(Clone)]
pub(crate) struct IndexDirectory {
    files: MmapDirectory,
    folder: Arc<Path>,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The `meta.json` that may be replaced; any if none is known.
    meta: Option<MetaIdentity>,
    /// Files that are written and not synced yet.
    unsynced: Vec<File>,
    /// Why `meta.json` is not replaced any more.
    ended: Option<&'static str>,
    trouble: Option<Arc<io::Error>>,
}

impl IndexDirectory {
    pub(crate) fn open(folder: &Path) -> Result<Self, OpenDirectoryError> {
        let files = MmapDirectory::open(folder)?;
        Ok(Self { files, folder: folder.into(), kept: Arc::default() })
    }

    /// The `meta.json` that is there now; none if there is none.
    pub(crate) fn meta(&self) -> Option<MetaIdentity> {
        let metadata = std::fs::metadata(self.folder.join(META)).ok()?;
        Some(MetaIdentity {
            #[cfg(unix)]
            file: {
                use std::os::unix::fs::MetadataExt;
                (metadata.dev(), metadata.ino())
            },
            modified: metadata.modified().ok(),
            length: metadata.len(),
        })
    }

    /// From now on only this `meta.json` is replaced.
    pub(crate) fn know(&self, meta: Option<MetaIdentity>) {
        self.kept().meta = meta;
    }

    /// Whether the `meta.json` is there that we wrote or came to know. Nothing is replaced
    /// meanwhile.
    pub(crate) fn is_known(&self) -> bool {
        let kept = self.kept();
        kept.meta.is_some() && kept.meta == self.meta()
    }

    /// From now on `meta.json` is not replaced, nor is it being replaced now. Tantivy's writer lets
    /// go of its lock while a merge of it may still be ending.
    pub(crate) fn end(&self) {
        self.kept().ended = Some("the index was closed");
    }

    /// The first trouble of input and output since it was last taken.
    pub(crate) fn take_trouble(&self) -> Option<Arc<io::Error>> {
        self.kept().trouble.take()
    }

    /// What is kept is whole at any time, so a poisoned lock guards a sound state.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| note(&mut self.kept(), error))
    }

    fn replace_meta(&self, data: &[u8]) -> io::Result<()> {
        let mut kept = self.kept();
        if kept.meta.is_some() && kept.meta != self.meta() {
            let replaced = io::Error::new(io::ErrorKind::StaleNetworkFileHandle, REPLACED);
            return Err(note(&mut kept, replaced));
        }
        if let Some(why) = kept.ended {
            return Err(note(&mut kept, io::Error::other(why)));
        }
        let unsynced = std::mem::take(&mut kept.unsynced);
        // Files and all names are on disk before `meta.json` names them, and it is before anything
        // that it no longer names is removed.
        let written = self.write_beside(data, unsynced);
        let renamed = written
            .and_then(|()| std::fs::rename(self.folder.join(META_BESIDE), self.folder.join(META)));
        kept.meta = if renamed.is_ok() { self.meta() } else { kept.meta };
        let synced = renamed.and_then(|()| self.files.sync_directory());
        // What a sync should have brought to disk may be lost, and a second one would not say so.
        kept.ended = synced.is_err().then_some("an earlier sync failed");
        synced.map_err(|error| note(&mut kept, error))
    }

    /// Writes what is to be `meta.json`, and brings it to disk together with other files and the
    /// names of all of them. Whoever may read the folder may read it.
    fn write_beside(&self, data: &[u8], mut unsynced: Vec<File>) -> io::Result<()> {
        let mut beside = File::create(self.folder.join(META_BESIDE))?;
        beside.write_all(data)?;
        unsynced.push(beside);
        unsynced.push(File::open(&self.folder)?);
        sync_all(&unsynced)
    }

    /// Every file of a segment that is in the folder, as tantivy keeps its list.
    fn segment_files(&self) -> io::Result<Vec<u8>> {
        let mut names = Vec::new();
        for file in std::fs::read_dir(&self.folder)? {
            let name = file?.file_name();
            names.extend(name.to_str().filter(|name| is_of_a_segment(name)).map(str::to_owned));
        }
        Ok(serde_json::to_vec(&names)?)
    }
}

/// The text of the error when `meta.json` is not the one that may be replaced.
pub(crate) const REPLACED: &str = "meta.json was replaced or removed";

fn note(kept: &mut Kept, error: io::Error) -> io::Error {
    let again = io::Error::new(error.kind(), error.to_string());
    kept.trouble.get_or_insert(Arc::new(error));
    again
}

pub(crate) fn is_of_a_segment(name: &str) -> bool {
    let Some((id, ending)) = name.split_once('.') else { return false };
    let ending = match ending.split_once('.') {
        // The deletions of a segment carry the commit they belong to.
        Some((commit, "del")) if commit.bytes().all(|byte| byte.is_ascii_digit()) => "del",
        _ => ending,
    };
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) && ENDINGS.contains(&ending)
}

impl fmt::Debug for IndexDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IndexDirectory").field(&self.folder).finish()
    }
}

impl Directory for IndexDirectory {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.files.get_file_handle(path)
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.files.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.files.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        let full = self.folder.join(path);
        // A commit that a crash cut short may be made again under the same names. What it left is
        // removed and not written over: somebody may read it still.
        let opened = match File::create_new(&full) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                std::fs::remove_file(&full).and_then(|()| File::create_new(&full))
            }
            opened => opened,
        };
        let file = self.noted(opened);
        let file = file.map_err(|error| OpenWriteError::wrap_io_error(error, path.to_owned()))?;
        let written = Written { file: Some(file), bytes: 0, directory: self.clone() };
        Ok(BufWriter::new(Box::new(written)))
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        if path == Path::new(MANAGED) {
            let read = self.segment_files();
            return read.map_err(|error| OpenReadError::wrap_io_error(error, path.to_owned()));
        }
        self.files.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        if path == Path::new(MANAGED) {
            return Ok(());
        }
        if path == Path::new(META) {
            return self.replace_meta(data);
        }
        self.noted(self.files.atomic_write(path, data))
    }

    /// Nothing: what counts is synced when `meta.json` is replaced.
    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }

    /// Whoever may only read cannot make the lock's file. It is locked if it is there, and else
    /// nobody writes.
    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        let acquired = self.files.acquire_lock(lock);
        let Err(LockError::IoError(error)) = &acquired else { return acquired };
        let may_only_read = matches!(
            error.kind(),
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
        );
        if !may_only_read || lock.filepath != META_LOCK.filepath {
            return acquired;
        }
        match File::open(self.folder.join(&lock.filepath)) {
            Ok(file) => {
                file.lock().map_err(LockError::wrap_io_error)?;
                Ok(DirectoryLock::from(Box::new(file)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Ok(DirectoryLock::from(Box::new(())))
            }
            Err(error) => Err(LockError::wrap_io_error(error)),
        }
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.files.watch(callback)
    }
}

/// A file under way.
struct Written {
    /// None once it is whole.
    file: Option<File>,
    bytes: usize,
    directory: IndexDirectory,
}

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(file) = &mut self.file else { return Ok(0) };
        let written = self.directory.noted(file.write(bytes))?;
        self.bytes += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl TerminatingWrite for Written {
    fn terminate_ref(&mut self, _: AntiCallToken) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        if self.bytes >= SYNCED_ALONE_BYTES {
            let synced = file.sync_data();
            return self.directory.noted(synced);
        }
        self.directory.kept().unsynced.push(file);
        Ok(())
    }
}

/// Syncs files side by side: a file system writes its journal once for all that wait for it.
fn sync_all(files: &[File]) -> io::Result<()> {
    std::thread::scope(|scope| {
        let start = files.iter().map(|file| {
            let thread = std::thread::Builder::new();
            (file, thread.spawn_scoped(scope, move || file.sync_all()))
        });
        // All are started before one is waited for.
        let threads: Vec<_> = start.collect();
        threads.into_iter().try_for_each(|(file, thread)| match thread {
            Ok(thread) => {
                let synced = thread.join();
                synced.unwrap_or_else(|_| Err(io::Error::other("a sync panicked")))
            }
            // Without a thread it is synced here.
            Err(_) => file.sync_all(),
        })
    })
}

/// Whether a folder holds nothing, or nothing but what tantivy leaves of an index that was never
/// made whole; else the name of something that is not ours.
pub(crate) fn stranger(folder: &Path) -> io::Result<Option<PathBuf>> {
    for file in std::fs::read_dir(folder)? {
        let name = file?.file_name();
        let ours = name.to_str().is_some_and(|name| {
            is_of_a_segment(name)
                || is_of_generations(name)
                || name.starts_with(".tantivy-")
                || name == MANAGED
                || name.starts_with(".tmp")
        });
        if !ours {
            return Ok(Some(name.into()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
