//! An index that was closed is written no more.

use std::path::Path;

use tantivy::Directory;

use super::*;
use crate::directory::META;
use crate::spec::{FieldKind, FieldSpec, IndexSpec, WRITER_BYTES_MIN};

fn layout() -> Layout {
    let kind = FieldKind::Keyword;
    let name = "body".to_owned();
    let field = FieldSpec { name, kind, indexed: true, stored: true, fast: false, required: false };
    Layout::wanted(&IndexSpec { fields: vec![field], writer_bytes: WRITER_BYTES_MIN })
}

/// Tantivy's writer lets go of its lock while a merge of it may still be about to end: what it
/// would replace may be another writer's by then.
#[test]
fn writer_that_was_dropped_replaces_nothing_any_more() {
    let folder = tempfile::tempdir().expect("a folder");
    OpenIndex::make(folder.path(), &layout()).expect("made");
    let mut open = OpenIndex::at(folder.path(), &layout()).expect("opened").expect("it is there");
    open.begin(WRITER_BYTES_MIN).expect("begun");
    let ending = open.directory.clone();
    let before = ending.atomic_read(Path::new(META)).expect("read");
    ending.atomic_write(Path::new(META), &before).expect("it is the writer's");
    drop(open);
    let error = ending.atomic_write(Path::new(META), b"{}").expect_err("it was closed");
    assert!(error.to_string().contains("was closed"), "{error}");
    assert_eq!(ending.atomic_read(Path::new(META)).expect("read"), before);
}
