//! The tantivy index.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use tantivy::directory::{META_LOCK, MmapDirectory};
use tantivy::schema::document::OwnedValue;
use tantivy::schema::{Field, IndexRecordOption, Schema, Value as _};
use tantivy::{DocId, DocSet, Index as Tantivy, SegmentReader, TERMINATED, TantivyDocument};

use super::Sink;
use crate::Fault;
use crate::law::{Entry, Held};
use crate::writer::RECORD;

/// A folder of tantivy's.
#[derive(Debug)]
pub struct Index;

const FIELDS: [&str; 3] = ["code", "body", "size"];

fn at(folder: &Path) -> PathBuf {
    folder.join("search")
}

impl Sink for Index {
    fn name(&self) -> &'static str {
        "tantivy"
    }

    fn config(&self) -> &'static str {
        "kind = \"tantivy\"\npath = \"sink/search\"\n\
         fields = { id = \"i64\", code = \"keyword\", body = \"text\", size = \"f64\" }\n"
    }

    fn held(&self, folder: &Path) -> Result<Held, Fault> {
        let path = at(folder);
        if !path.join("meta.json").exists() {
            return Ok(Held::new());
        }
        let index = Tantivy::open_in_dir(&path)?;
        let searcher = index.reader()?.searcher();
        // Texts are made by what makes the source's, so that equal records are equal texts.
        let texts = Connection::open_in_memory()?;
        let mut held = Held::new();
        for segment in searcher.segment_readers() {
            read(segment, &index.schema(), &texts, &mut held)?;
        }
        Ok(held)
    }

    fn back_up(&self, folder: &Path, to: &Path) -> Result<(), Fault> {
        let (from, to) = (at(folder), at(to));
        let files = MmapDirectory::open(&from)?;
        // Whoever writes removes no file meanwhile.
        let _kept = tantivy::Directory::acquire_lock(&files, &META_LOCK)?;
        std::fs::create_dir_all(&to)?;
        let meta = from.join("meta.json");
        let (named, text) = loop {
            let text = std::fs::read(&meta)?;
            let named = Tantivy::open_in_dir(&from)?.load_metas()?.list_segment_files();
            if std::fs::read(&meta)? == text {
                break (named, text);
            }
        };
        for name in named {
            // A segment has not all the files that one can have.
            if from.join(&name).exists() {
                std::fs::copy(from.join(&name), to.join(&name))?;
            }
        }
        Ok(std::fs::write(to.join("meta.json"), text)?)
    }

    fn restore(&self, folder: &Path, from: &Path) -> Result<(), Fault> {
        let new = folder.join("search-new");
        std::fs::create_dir_all(&new)?;
        for file in std::fs::read_dir(at(from))? {
            let file = file?;
            std::fs::copy(file.path(), new.join(file.file_name()))?;
        }
        // At no time is there none, as with a file that is renamed over another.
        renameat_with(CWD, &new, CWD, at(folder), RenameFlags::EXCHANGE)?;
        Ok(std::fs::remove_dir_all(new)?)
    }

    /// Its files are never written over.
    fn restore_live(&self, _folder: &Path, _from: &Path) -> Result<bool, Fault> {
        Ok(false)
    }

    /// Each commit is new files.
    fn pin(&self, _folder: &Path) -> Result<Option<Connection>, Fault> {
        Ok(None)
    }

    fn verify(&self, folder: &Path) -> Result<(), Fault> {
        let path = at(folder);
        if !path.join("meta.json").exists() {
            return Ok(());
        }
        let damaged = Tantivy::open_in_dir(&path)?.validate_checksum()?;
        if damaged.is_empty() { Ok(()) } else { Err(format!("damaged: {damaged:?}").into()) }
    }
}

/// Adds what a segment holds, live and remembered as deleted.
fn read(
    segment: &SegmentReader,
    schema: &Schema,
    texts: &Connection,
    held: &mut Held,
) -> Result<(), Fault> {
    let store = segment.get_store_reader(1)?;
    let column = |name| segment.fast_fields().u64(name);
    let (rules, version) = (column("_rules")?, column("_version")?);
    for (field, live) in [("_key", true), ("_buried", false)] {
        for (key, doc) in keys(segment, schema.get_field(field)?)? {
            let rank = rules.first(doc).zip(version.first(doc)).ok_or("a record has no rank")?;
            let row = if live { Some(record(&store.get(doc)?, schema, texts)?) } else { None };
            if let Some(other) = held.insert(key.clone(), Entry { rank, row }) {
                return Err(format!("{key} is there twice: {other:?}").into());
            }
        }
    }
    Ok(())
}

/// The keys in a field with their documents, as far as they were not deleted.
fn keys(segment: &SegmentReader, field: Field) -> Result<Vec<(String, DocId)>, Fault> {
    let index = segment.inverted_index(field)?;
    let mut terms = index.terms().stream()?;
    let mut found = Vec::new();
    while let Some((key, term)) = terms.next() {
        let mut postings = index.read_postings_from_terminfo(term, IndexRecordOption::Basic)?;
        while postings.doc() != TERMINATED {
            if segment.alive_bitset().is_none_or(|alive| alive.is_alive(postings.doc())) {
                found.push((String::from_utf8(key.to_vec())?, postings.doc()));
            }
            postings.advance();
        }
    }
    Ok(found)
}

/// The record as text.
fn record(
    document: &TantivyDocument,
    schema: &Schema,
    texts: &Connection,
) -> Result<String, Fault> {
    let value = |name| {
        let value = document.get_first(schema.get_field(name)?);
        Ok::<_, Fault>(match value.map(|value| OwnedValue::from(value.as_value())) {
            None => rusqlite::types::Value::Null,
            Some(OwnedValue::Str(text)) => text.into(),
            Some(OwnedValue::F64(number)) => number.into(),
            Some(other) => return Err(format!("{name} is {other:?}").into()),
        })
    };
    let [code, body, size] = FIELDS.map(value);
    let sql = format!("SELECT {RECORD} FROM (SELECT ?1 AS code, ?2 AS body, ?3 AS size)");
    let mut select = texts.prepare_cached(&sql)?;
    Ok(select.query_row(params![code?, body?, size?], |row| row.get(0))?)
}
