//! Trouble of the file: nothing is half-written, and each kind has its class.

use std::path::PathBuf;

use rusqlite::{Connection, MAIN_DB};
use tempfile::TempDir;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Body, Delivery, Outcome};
use truekeep_core::{
    BatchName, Document, Fence, Incarnation, LedgerId, MarkNumber, Rank, RulesNumber, Value,
    Version,
};

use super::*;
use crate::spec::Layout;

struct File {
    _folder: TempDir,
    path: PathBuf,
}

fn file() -> File {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mirror.db");
    File { _folder: folder, path }
}

fn spec() -> MirrorSpec {
    MirrorSpec { table: "mirror".into(), layout: Layout::Json { column: "document".into() } }
}

async fn open(path: &Path) -> SqliteSink {
    SqliteSink::open(path, spec(), Duration::from_millis(20)).await.expect("opened")
}

fn batch(number: u64, keys: std::ops::Range<u64>, bytes: usize) -> Batch {
    let names: Arc<[Box<str>]> = Arc::new(["body".into()]);
    let delivery = |key: u64| Delivery {
        key: Key::new(key.to_string()),
        rank: Rank { rules: RulesNumber::new(1), version: Version::new(number) },
        body: Body::Upsert(Arc::new(Document::new(
            Arc::clone(&names),
            vec![Value::Text("x".repeat(bytes).into())],
        ))),
    };
    Batch {
        follows: BatchName::default(),
        mark: Mark {
            ledger: LedgerId::parse("ledger").expect("a token"),
            pipeline: Incarnation::parse("pipeline").expect("a token"),
            rules: RulesNumber::new(1),
            fence: Fence::new(1),
            number: MarkNumber::new(number),
            removed: false,
        },
        deliveries: keys.map(delivery).collect(),
    }
}

async fn writer(sink: &SqliteSink) -> truekeep_sqlite::Database {
    sink.file.unchanged("look").await.expect("there").writer
}

async fn number(sink: &SqliteSink) -> u64 {
    sink.mark().await.expect("read").map_or(0, |mark| mark.number.get())
}

async fn count(sink: &SqliteSink) -> usize {
    sink.list(None, 100_000).await.expect("listed").entries.len()
}

#[tokio::test]
async fn full_disk_leaves_nothing_of_a_batch() {
    let file = file();
    let sink = open(&file.path).await;
    sink.prepare().await.expect("prepared");
    sink.apply(batch(1, 0..10, 10)).await.expect("applied");
    let writer = writer(&sink).await;
    let limit = |pages: u32| {
        writer.call("limit the file", move |db| {
            Ok(db.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?)
        })
    };
    limit(30).await.expect("limited");
    let error = sink.apply(batch(2, 5..1_000, 1_000)).await.expect_err("the disk is full");
    assert_eq!((error.class, error.code), (FailureClass::Retry, Code::SINK_UNAVAILABLE));
    assert_eq!((number(&sink).await, count(&sink).await), (1, 10));
    limit(100_000).await.expect("limited");
    sink.apply(batch(2, 5..1_000, 1_000)).await.expect("applied");
    assert_eq!((number(&sink).await, count(&sink).await), (2, 1_000));
}

#[tokio::test]
async fn locked_file_is_tried_again() {
    let file = file();
    let sink = open(&file.path).await;
    sink.prepare().await.expect("prepared");
    let other = Connection::open(&file.path).expect("opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("locked");
    let error = sink.apply(batch(1, 0..3, 10)).await.expect_err("locked");
    assert_eq!((error.class, error.code), (FailureClass::Retry, Code::SINK_UNAVAILABLE));
    // A reader does not wait, and what is there needs no lock to be prepared again.
    assert_eq!(number(&sink).await, 0);
    sink.prepare().await.expect("prepared");
    other.execute_batch("COMMIT").expect("unlocked");
    sink.apply(batch(1, 0..3, 10)).await.expect("applied");
}

#[tokio::test]
async fn read_only_file_needs_an_operator() {
    let file = file();
    let sink = open(&file.path).await;
    sink.prepare().await.expect("prepared");
    // As a file without the right to write it answers, also to a privileged user.
    let writer = writer(&sink).await;
    let refuse =
        |on: bool| writer.call("set", move |db| Ok(db.pragma_update(None, "query_only", on)?));
    refuse(true).await.expect("set");
    let error = sink.apply(batch(1, 0..3, 10)).await.expect_err("read-only");
    assert_eq!((error.class, error.code), (FailureClass::Halted, Code::SINK_UNAVAILABLE));
    refuse(false).await.expect("set");
    assert_eq!((number(&sink).await, count(&sink).await), (0, 0));
}

#[tokio::test]
async fn number_that_sqlite_has_no_place_for_is_refused_alone() {
    let file = file();
    let sink = open(&file.path).await;
    sink.prepare().await.expect("prepared");
    let mut sent = batch(1, 0..3, 10);
    sent.deliveries[1].rank.version = Version::new(u64::MAX);
    let applied = sink.apply(sent).await.expect("applied");
    assert!(
        matches!(
            &applied.outcomes[..],
            [Outcome::Applied, Outcome::Refused(code, _), Outcome::Applied]
                if *code == Code::SINK_REFUSED
        ),
        "{applied:?}"
    );
    assert_eq!(count(&sink).await, 2);
}

#[tokio::test]
async fn record_too_big_for_sqlite_is_refused_alone() {
    let file = file();
    let sink = open(&file.path).await;
    sink.prepare().await.expect("prepared");
    writer(&sink)
        .await
        .call("limit values", |db| {
            Ok(db.set_limit(rusqlite::limits::Limit::SQLITE_LIMIT_LENGTH, 10_000).map(drop)?)
        })
        .await
        .expect("limited");
    let mut sent = batch(1, 0..3, 10);
    sent.deliveries[0] = batch(1, 0..1, 20_000).deliveries.remove(0);
    let applied = sink.apply(sent).await.expect("applied");
    assert!(
        matches!(&applied.outcomes[..], [Outcome::Refused(..), Outcome::Applied, Outcome::Applied]),
        "{applied:?}"
    );
    assert_eq!((number(&sink).await, count(&sink).await), (1, 2));
}

/// Rule 124: a file that was removed or replaced under the open sink takes no more batches and
/// confirms none; who looks anew sees the file that is there.
#[tokio::test]
async fn file_that_was_replaced_is_noticed() {
    let file = file();
    let sink = open(&file.path).await;
    sink.prepare().await.expect("prepared");
    sink.apply(batch(1, 0..3, 10)).await.expect("applied");
    let backup = file.path.with_extension("backup");
    let aside = Connection::open(&file.path).expect("opened");
    aside.execute("VACUUM INTO ?1", [backup.to_str().expect("a path")]).expect("backed up");
    let applied = sink.apply(batch(2, 3..6, 10)).await.expect("applied");
    drop(aside);
    let remove = || {
        std::fs::remove_file(&file.path).expect("removed");
        for end in ["-wal", "-shm"] {
            // The last connection to close may have removed it.
            let _ = std::fs::remove_file(file.path.with_extension(format!("db{end}")));
        }
    };
    remove();
    for _ in 0..2 {
        let sent = sink.apply(batch(3, 6..9, 10)).await.map(drop);
        let confirmed = sink.confirm(&applied.receipt).await.map(drop);
        let listed = sink.list(None, 10).await.map(drop);
        for answer in [sent, confirmed, listed] {
            let error = answer.expect_err("the file is gone");
            assert_eq!((error.class, error.code), (FailureClass::Halted, Code::SINK_WENT_BACK));
        }
        // The second time, an older file stands in its place.
        if !file.path.exists() {
            std::fs::copy(&backup, &file.path).expect("restored");
        }
    }
    assert_eq!((number(&sink).await, count(&sink).await), (1, 3));
    remove();
    assert_eq!(number(&sink).await, 0);
    sink.prepare().await.expect("prepared anew");
    sink.apply(batch(1, 0..3, 10)).await.expect("applied");
    assert_eq!((number(&sink).await, count(&sink).await), (1, 3));
}

/// Rule 124: a backup that is put into the open file leaves no trace but an older mark; the batch
/// after those that are lost does not hide them. Who looks anew goes on from what is there.
#[tokio::test]
async fn file_that_was_restored_in_place_takes_no_batch_after_those_it_lost() {
    let file = file();
    let sink = open(&file.path).await;
    sink.prepare().await.expect("prepared");
    let mut copies = Vec::new();
    for number in 1..=8 {
        let copy = file.path.with_extension(number.to_string());
        let aside = Connection::open(&file.path).expect("opened");
        let progress = None::<fn(rusqlite::backup::Progress)>;
        aside.backup(MAIN_DB, &copy, progress).expect("backed up");
        copies.push(copy);
        sink.apply(batch(number, number * 10..number * 10 + 5, 10)).await.expect("applied");
    }
    for (held, copy) in copies.iter().enumerate().rev() {
        let mut aside = Connection::open(&file.path).expect("opened");
        let progress = None::<fn(rusqlite::backup::Progress)>;
        aside.restore(MAIN_DB, copy, progress).expect("restored");
        let next = Batch { follows: batch(8, 0..0, 0).mark.batch(), ..batch(9, 90..95, 10) };
        let error = sink.apply(next).await.expect_err("batches are lost");
        assert_eq!((error.class, error.code), (FailureClass::Halted, Code::SINK_WENT_BACK));
        assert_eq!((number(&sink).await, count(&sink).await), (held as u64, held * 5));
    }
    sink.apply(batch(1, 10..15, 10)).await.expect("applied");
    assert_eq!((number(&sink).await, count(&sink).await), (1, 5));
}
