//! The index's folder is made, recognised and never taken over; one process writes it.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_core::ports::{Outcome, Sink};
use truekeep_sink_tantivy::{FieldKind, FieldSpec, IndexSpec, TantivySink};

use crate::fixture::{WORDS, batch, field, mark, raw_documents, raw_writer, spec, text, upsert};

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("deep/index");
    (folder, path)
}

fn named(path: &Path, fields: Vec<FieldSpec>) -> TantivySink {
    TantivySink::new(path, &spec(fields)).expect("named")
}

fn body() -> Vec<FieldSpec> {
    vec![field("body", FieldKind::Text(WORDS))]
}

async fn prepared(path: &Path) -> TantivySink {
    let sink = named(path, body());
    sink.prepare().await.expect("prepared");
    sink
}

async fn write(sink: &TantivySink, number: u64) -> Result<Vec<Outcome>, PortError> {
    let sent = vec![upsert("k", number, &[("body", text(&number.to_string()))])];
    Ok(sink.apply(batch(number, sent)).await?.outcomes)
}

#[tokio::test]
async fn index_is_made_once_and_looked_at_without_being_made() {
    let (_folder, path) = folder();
    let sink = named(&path, body());
    assert!(!sink.inspect().await.expect("looked"));
    assert!(!path.exists());
    for _ in 0..2 {
        sink.prepare().await.expect("prepared");
        assert!(sink.inspect().await.expect("looked"));
    }
}

#[test]
fn fields_that_cannot_be_are_refused_by_name() {
    let index = |fields: Vec<FieldSpec>| IndexSpec { fields, ..spec(body()) };
    let named = |name: &str| index(vec![field(name, FieldKind::Signed)]);
    let nothing = FieldSpec { indexed: false, stored: false, ..field("f", FieldKind::Signed) };
    for (refused, told) in [
        (index(vec![]), "no fields"),
        (named(""), "it is empty"),
        (named("_key"), "begin with `_`"),
        (named("-a"), "begin with `_` or `-`"),
        (named("a b"), "only letters"),
        (named("a.b"), "only letters"),
        (named("a:b"), "only letters"),
        (index([body(), body()].concat()), "field `body` twice"),
        (index(vec![nothing]), "field `f` is neither"),
        (IndexSpec { writer_bytes: 1, ..spec(body()) }, "15000000 bytes"),
    ] {
        let error = TantivySink::new(Path::new("nowhere"), &refused).expect_err("refused");
        assert_eq!((error.class, &error.code), (FailureClass::Halted, &Code::CONFIG_INVALID));
        assert!(error.detail.contains(told), "{}", error.detail);
    }
    assert!(named("größe-2_x").check().is_ok());
}

#[tokio::test]
async fn index_of_other_fields_is_a_mismatch_that_names_them() {
    let (_folder, path) = folder();
    write(&prepared(&path).await, 1).await.expect("written");
    let other =
        named(&path, vec![field("body", FieldKind::Keyword), field("n", FieldKind::Signed)]);
    let check = |error: PortError| {
        assert_eq!((error.class, error.code), (FailureClass::Halted, Code::INDEX_MISMATCH));
        assert_eq!(
            error.detail,
            "field `body` is text by `truekeep1:words`, stored, not keyword, stored; \
             it lacks field `n` (i64, stored)"
        );
    };
    check(other.prepare().await.expect_err("it differs"));
    check(other.inspect().await.expect_err("it differs"));
    check(write(&other, 2).await.expect_err("it differs"));
    assert_eq!(raw_documents(&path).len(), 1);
}

#[tokio::test]
async fn folder_of_somebody_else_is_never_taken_over() {
    let (_folder, path) = folder();
    std::fs::create_dir_all(&path).expect("made");
    std::fs::write(path.join("thesis.doc"), "kept").expect("written");
    let error = named(&path, body()).prepare().await.expect_err("it is not ours");
    assert_eq!((error.class, &error.code), (FailureClass::Halted, &Code::INDEX_MISMATCH));
    assert!(error.detail.contains("`thesis.doc`"), "{}", error.detail);
    let names: Vec<_> = std::fs::read_dir(&path).expect("read").collect();
    assert_eq!(names.len(), 1, "nothing was made");
    let file = path.join("thesis.doc");
    let error = named(&file, body()).prepare().await.expect_err("it is a file");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::SINK_UNAVAILABLE));
}

#[tokio::test]
async fn index_that_somebody_else_committed_to_has_lost_its_mark() {
    let (_folder, path) = folder();
    let sink = prepared(&path).await;
    write(&sink, 1).await.expect("written");
    drop(sink);
    let (_, mut writer) = raw_writer(&path);
    writer.delete_all_documents().expect("deleted");
    writer.commit().expect("committed");
    drop(writer);
    let sink = prepared(&path).await;
    assert_eq!(sink.mark().await.expect("read"), None);
    let error = write(&sink, 2).await.expect_err("what it held is lost");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::SINK_WENT_BACK));
}

/// A folder that was restored under a running writer takes nothing, whichever way it was done.
#[tokio::test]
async fn index_that_was_restored_under_the_writer_takes_no_batch() {
    for in_place in [false, true] {
        let (folder, path) = folder();
        let sink = prepared(&path).await;
        write(&sink, 1).await.expect("written");
        let backup = folder.path().join("backup");
        copy(&path, &backup);
        for number in 2..6 {
            write(&sink, number).await.expect("written");
        }
        if in_place {
            for file in std::fs::read_dir(&path).expect("read") {
                std::fs::remove_file(file.expect("a file").path()).expect("removed");
            }
            copy(&backup, &path);
        } else {
            std::fs::rename(&path, folder.path().join("lost")).expect("moved");
            std::fs::rename(&backup, &path).expect("restored");
        }
        let went_back = |error: PortError| {
            assert_eq!((error.class, error.code), (FailureClass::Halted, Code::SINK_WENT_BACK));
        };
        let receipt = truekeep_core::ports::Receipt(5);
        went_back(sink.confirm(&receipt).await.expect_err("it is another index"));
        for _ in 0..2 {
            went_back(write(&sink, 6).await.expect_err("it is another index"));
        }
        assert_eq!(sink.mark().await.expect("read"), Some(mark(1)));
        write(&sink, 2).await.expect("it goes on from what it holds");
        assert_eq!(raw_documents(&path).len(), 1);
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for file in std::fs::read_dir(from).expect("read") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), to.join(file.file_name())).expect("copied");
    }
}

#[tokio::test]
async fn second_writer_waits_until_the_first_is_gone() {
    let (_folder, path) = folder();
    let (first, second) = (prepared(&path).await, prepared(&path).await);
    write(&first, 1).await.expect("written");
    let error = write(&second, 2).await.expect_err("another writes it");
    assert_eq!((error.class, error.code), (FailureClass::Retry, Code::SINK_LOCKED));
    // It reads what the first has written, and what it writes next.
    assert_eq!(second.mark().await.expect("read"), Some(mark(1)));
    write(&first, 2).await.expect("written");
    assert_eq!(second.mark().await.expect("read"), Some(mark(2)));
    drop(first);
    assert_eq!(write(&second, 3).await.expect("the lock is free"), [Outcome::Applied]);
}

/// Another program may merge, search and back up an index that nobody writes.
#[tokio::test]
async fn reader_takes_no_writers_lock() {
    let (_folder, path) = folder();
    write(&prepared(&path).await, 1).await.expect("written");
    let sink = prepared(&path).await;
    sink.mark().await.expect("read");
    sink.list(None, 10).await.expect("listed");
    drop(raw_writer(&path));
}

/// What another process has written since it was last read counts, once the lock is ours.
#[tokio::test]
async fn writer_begins_from_what_the_one_before_has_left() {
    let (_folder, path) = folder();
    let (first, second) = (prepared(&path).await, prepared(&path).await);
    write(&first, 1).await.expect("written");
    assert_eq!(second.mark().await.expect("read"), Some(mark(1)));
    write(&first, 2).await.expect("written");
    drop(first);
    let older = batch(3, vec![upsert("k", 1, &[("body", text("older"))])]);
    let outcomes = second.apply(older).await.expect("it follows").outcomes;
    assert_eq!(outcomes, [Outcome::Outdone(crate::fixture::rank(2))]);
    assert_eq!(raw_documents(&path)[&truekeep_core::Key::new("k")]["body"], "2");
}

/// A worker that lost its scope does not shut out its successor.
#[tokio::test]
async fn silent_writer_lets_go() {
    let (_folder, path) = folder();
    let (silent, next) = (prepared(&path).await, prepared(&path).await);
    write(&silent, 1).await.expect("written");
    let asked = std::time::Instant::now();
    while let Err(error) = write(&next, 2).await {
        assert_eq!(error.code, Code::SINK_LOCKED);
        assert!(asked.elapsed().as_secs() < 60, "less than any patience");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(silent.mark().await.expect("read"), Some(mark(2)));
}

/// How many tombstones an index holds of a key.
fn tombstones(path: &Path, key: &str) -> usize {
    let index = tantivy::Index::open_in_dir(path).expect("opened");
    let field = index.schema().get_field("_buried").expect("a field");
    let query = tantivy::query::TermQuery::new(
        tantivy::Term::from_field_text(field, key),
        tantivy::schema::IndexRecordOption::Basic,
    );
    let searcher = index.reader().expect("read").searcher();
    searcher.search(&query, &tantivy::collector::Count).expect("counted")
}

/// A tombstone goes when its record comes back, and takes no room for ever.
#[tokio::test]
async fn record_that_comes_back_leaves_no_tombstone() {
    let (_folder, path) = folder();
    let sink = prepared(&path).await;
    write(&sink, 1).await.expect("written");
    for number in [2, 4] {
        let gone = vec![crate::fixture::delete("k", number)];
        sink.apply(batch(number, gone)).await.expect("applied");
        assert_eq!(tombstones(&path, "k"), 1);
        write(&sink, number + 1).await.expect("written");
        assert_eq!(tombstones(&path, "k"), 0, "after {number}");
    }
}

/// A pipeline that is removed leaves nothing that nobody will need.
#[tokio::test]
async fn removed_pipeline_leaves_no_tombstones() {
    let (_folder, path) = folder();
    let sink = prepared(&path).await;
    sink.apply(batch(1, vec![crate::fixture::delete("k", 1)])).await.expect("applied");
    assert_eq!(tombstones(&path, "k"), 1);
    let mut last = batch(2, Vec::new());
    last.mark.removed = true;
    sink.apply(last).await.expect("applied");
    assert_eq!(tombstones(&path, "k"), 0);
}
