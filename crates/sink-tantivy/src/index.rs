//! An index that is open: read as it is now, and written by one process at a time.

use std::fs::File;
use std::path::Path;

use tantivy::directory::INDEX_WRITER_LOCK;
use tantivy::directory::error::LockError;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::schema::FieldType;
use tantivy::{
    Directory, Index, IndexReader, IndexSettings, IndexWriter, ReloadPolicy, TantivyDocument,
    TantivyError,
};
use truekeep_core::Key;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Listing, Mark};

use crate::analysis;
use crate::directory::{IndexDirectory, MetaIdentity, stranger};
use crate::failure::Failure;
use crate::generations::is_of_a_generation;
use crate::held::Segment;
use crate::listing::Listed;
use crate::mark;
use crate::schema::Layout;

/// Records of a segment that is merged with any smaller one. A commit of a few records makes a
/// segment of its own, and merging eight of them must not write ten thousand others again.
const SMALL_RECORDS: u32 = 1_000;
/// Segments are merged with those of up to four times their size: few of them stay to be looked
/// into, and each record is written again at most six times.
const LEVEL_LOG2: f64 = 2.0;
/// Records of a segment that is merged no more: a merge's memory grows with its records.
const MERGED_RECORDS_MAX: usize = 1_000_000;
/// The share of deleted records at which a segment is written anew.
const DELETED_SHARE_MAX: f32 = 0.3;

/// An index that is open.
pub(crate) struct OpenIndex {
    pub layout: Layout,
    pub segments: Vec<Segment>,
    /// The mark of the commit that is read.
    pub mark: Option<Mark>,
    pub reader: IndexReader,
    directory: IndexDirectory,
    index: Index,
    /// The `meta.json` that is read.
    read: Option<MetaIdentity>,
    /// A listing of what is read.
    listed: Listed,
    writer: Option<IndexWriter>,
}

impl OpenIndex {
    /// Opens the index of a folder; none if there is none.
    pub(crate) fn at(folder: &Path, wanted: &Layout) -> Result<Option<Self>, Failure> {
        let Some((directory, index)) = raw(folder)? else { return Ok(None) };
        let layout = wanted.over(&index.schema())?;
        let read = directory.meta();
        let (segments, mark, reader) = (Vec::new(), None, reader(&index)?);
        let (listed, writer) = (Listed::default(), None);
        let mut open =
            Self { layout, segments, mark, reader, directory, index, read, listed, writer };
        open.read_anew()?;
        Ok(Some(open))
    }

    /// Makes an index in a folder, which is made too.
    pub(crate) fn make(folder: &Path, wanted: &Layout) -> Result<(), Failure> {
        std::fs::create_dir_all(folder)?;
        // A generation's folder may be made with the one that it is in.
        let made = if is_of_a_generation(folder) { 2 } else { 1 };
        for parent in folder.ancestors().skip(1).take(made) {
            let here = parent.as_os_str().is_empty();
            File::open(if here { Path::new(".") } else { parent })?.sync_all()?;
        }
        if let Some(name) = stranger(folder)? {
            let error = PortError::new("make an index", FailureClass::Halted, Code::INDEX_MISMATCH);
            let detail = format!("{} holds `{}`, and no index", folder.display(), name.display());
            return Err(error.detail(detail).into());
        }
        let directory = IndexDirectory::open(folder)?;
        let _lock = directory.acquire_lock(&INDEX_WRITER_LOCK).map_err(busy)?;
        // Another process may have made it meanwhile.
        if directory.meta().is_none() {
            Index::create(directory, wanted.schema.clone(), IndexSettings::default())?;
        }
        Ok(())
    }

    /// Whether what is read is what is there; what we wrote ourselves is read first.
    pub(crate) fn is_current(&mut self) -> Result<bool, Failure> {
        if self.directory.meta() == self.read {
            return Ok(true);
        }
        if self.writer.is_none() || !self.directory.is_known() {
            return Ok(false);
        }
        self.read_anew()?;
        Ok(true)
    }

    /// Whether the `meta.json` is there that is read, or that we wrote since.
    pub(crate) fn is_there(&self) -> bool {
        self.directory.meta() == self.read || self.directory.is_known()
    }

    pub(crate) fn read_anew(&mut self) -> Result<(), Failure> {
        // Before: should it change meanwhile, the next look sees it.
        let meta = self.directory.meta();
        reload(&self.reader)?;
        let metas = self.index.load_metas()?;
        if metas.schema != self.layout.schema {
            self.layout = self.layout.over(&metas.schema)?;
        }
        self.mark = mark::read(metas.payload.as_deref())?;
        let segments = Segment::of(&self.reader.searcher(), &self.layout)?;
        aside(std::mem::replace(&mut self.segments, segments));
        self.listed = Listed::default();
        self.read = meta;
        Ok(())
    }

    /// At most `limit` live records after a key, in the order of keys.
    pub(crate) fn list(&mut self, after: Option<&Key>, limit: u32) -> Result<Listing, Failure> {
        self.listed.page(&self.segments, after, limit)
    }

    /// The writer, made if there is none, over what is read.
    pub(crate) fn begin(&mut self, bytes: usize) -> Result<(), Failure> {
        // What a merge met before is not this batch's.
        self.directory.take_trouble();
        if self.writer.is_some() {
            // Should another index be there now, the commit tells.
            return Ok(());
        }
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(bytes)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        self.directory.know(None);
        let writer = self.index.writer_with_options(options)?;
        let mut merges = LogMergePolicy::default();
        merges.set_max_docs_before_merge(MERGED_RECORDS_MAX);
        merges.set_min_layer_size(SMALL_RECORDS);
        merges.set_level_log_size(LEVEL_LOG2);
        merges.set_del_docs_ratio_before_merge(DELETED_SHARE_MAX);
        writer.set_merge_policy(Box::new(merges));
        self.writer = Some(writer);
        // Under the lock nobody else writes; what was written before it is read now.
        self.directory.know(self.directory.meta());
        if self.directory.meta() != self.read {
            self.read_anew()?;
        }
        Ok(())
    }

    /// The writer of an index that was begun.
    pub(crate) fn writer(&self) -> Result<&IndexWriter<TantivyDocument>, Failure> {
        let none = || TantivyError::InternalError("the index was not begun".into());
        Ok(self.writer.as_ref().ok_or_else(none)?)
    }

    /// Commits what was written, with a mark. Once it returns, all of it is on disk.
    pub(crate) fn commit(&mut self, mark: &Mark) -> Result<(), Failure> {
        let none = || TantivyError::InternalError("the index was not begun".into());
        let mut commit = self.writer.as_mut().ok_or_else(none)?.prepare_commit()?;
        commit.set_payload(&mark::written(mark));
        commit.commit()?;
        self.read_anew()
    }

    /// Whether it has the writer's lock.
    pub(crate) fn is_written(&self) -> bool {
        self.writer.is_some()
    }

    /// What the files said, if a thread of tantivy's ended without a word of it.
    pub(crate) fn cause(&self, failure: Failure) -> Failure {
        match (failure, self.directory.take_trouble()) {
            (Failure::Tantivy(_), Some(trouble)) => TantivyError::IoError(trouble).into(),
            (failure, _) => failure,
        }
    }
}

impl Drop for OpenIndex {
    fn drop(&mut self) {
        // Before the writer lets go of its lock: whoever takes it is alone then.
        self.directory.end();
    }
}

/// The index of a folder as tantivy sees it, with our analyses; none if there is none.
pub(crate) fn raw(folder: &Path) -> Result<Option<(IndexDirectory, Index)>, Failure> {
    if !folder.try_exists()? {
        return Ok(None);
    }
    let directory = IndexDirectory::open(folder)?;
    if directory.meta().is_none() {
        return Ok(None);
    }
    let mut index = Index::open(directory.clone())?;
    let schema = index.schema();
    let names = schema.fields().filter_map(|(_, entry)| match entry.field_type() {
        FieldType::Str(options) => Some(options.get_indexing_options()?.tokenizer()),
        FieldType::JsonObject(options) => Some(options.get_text_indexing_options()?.tokenizer()),
        _ => None,
    });
    let analyses = analysis::register(names);
    index.set_tokenizers(analyses);
    Ok(Some((directory, index)))
}

/// A reader that is told when to look anew.
pub(crate) fn reader(index: &Index) -> Result<IndexReader, Failure> {
    Ok(index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?)
}

/// Reads the newest commit.
pub(crate) fn reload(reader: &IndexReader) -> tantivy::Result<()> {
    let passed = reader.searcher();
    reader.reload()?;
    aside(passed);
    Ok(())
}

/// Drops something on a thread of its own. Whoever lets go of the last view of a file that was
/// removed waits for the file system's journal, and no commit should.
fn aside(passed: impl Send + 'static) {
    // Without a thread it is dropped here.
    let _ = std::thread::Builder::new().name("tantivy-drop".into()).spawn(move || drop(passed));
}

pub(crate) fn busy(error: LockError) -> Failure {
    TantivyError::LockFailure(error, None).into()
}

#[cfg(test)]
mod tests;
