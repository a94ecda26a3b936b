//! A process that is killed in the middle of a batch leaves the whole batch or nothing of it, and
//! no lock.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use truekeep_core::Value;
use truekeep_core::ports::{Batch, Delivery, Sink};
use truekeep_sink_memory::MemorySink;
use truekeep_sink_tantivy::{FieldKind, TantivySink};

use crate::ALONE;
use crate::fixture::{WORDS, batch, delete, field, raw_documents, spec, text, upsert};

/// Tells this program, started by itself, which index to write.
const FOLDER: &str = "TRUEKEEP_TEST_INDEX";
const LANDED: &str = "landed ";

/// New records, an update of earlier ones, a delete of some, as batch number `number`.
fn of_number(number: u64) -> Batch {
    let (new, updated, deleted) = (number * 100, (number / 2) * 100, (number - 1) * 100 + 60);
    let body = text(&format!("{number} {}", "word ".repeat(80)));
    let live = |key: u64| (key, upsert(&key.to_string(), number, &[("body", body.clone())]));
    let deliveries: BTreeMap<u64, Delivery> = (new..new + 90)
        .chain(updated..updated + 40)
        .map(live)
        .chain((deleted..deleted + 20).map(|key| (key, delete(&key.to_string(), number))))
        .collect();
    batch(number, deliveries.into_values().collect())
}

async fn open(path: &Path) -> TantivySink {
    let fields = spec(vec![field("body", FieldKind::Text(WORDS))]);
    let sink = TantivySink::new(path, &fields).expect("named");
    sink.prepare().await.expect("prepared");
    sink
}

async fn number(sink: &dyn Sink) -> u64 {
    sink.mark().await.expect("read").map_or(0, |mark| mark.number.get())
}

/// What the child does until it is killed; without its variable it is a test of nothing.
#[tokio::test]
async fn child_writes_batches() {
    let Some(path) = env::var_os(FOLDER) else { return };
    let sink = open(Path::new(&path)).await;
    let mut next = number(&sink).await + 1;
    loop {
        sink.apply(of_number(next)).await.expect("applied");
        // Past the capture of test output; the parent reads each line as it comes.
        writeln!(stdout(), "{LANDED}{next}").and_then(|()| stdout().flush()).expect("told");
        next += 1;
    }
}

/// Lets a child write and kills it once it has told of `batches`; returns the last it told of.
fn killed_after(path: &Path, batches: usize) -> u64 {
    let mut child = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", "killed::child_writes_batches", "--nocapture", "--test-threads=1"])
        .env(FOLDER, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
    let mut told = lines.map_while(Result::ok).filter_map(|line| {
        // The first line may stand behind the name of the test.
        line.split_once(LANDED).map(|(_, number)| number.parse::<u64>().expect("a number"))
    });
    let mut last = told.nth(batches - 1).expect("the child writes");
    child.kill().expect("killed");
    last = told.last().unwrap_or(last);
    child.wait().expect("ended");
    last
}

#[tokio::test]
async fn killed_writer_leaves_whole_batches_and_no_lock() {
    let _alone = ALONE.lock().await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("index");
    let reference = MemorySink::new();
    let mut landed = 0;
    for batches in [1, 2, 9, 1, 3, 7, 1, 5, 12, 2] {
        let told = killed_after(&path, batches);
        let left = unnamed(&path);
        let index = open(&path).await;
        let found = number(&index).await;
        assert!(found >= told, "batch {told} was told of, and {found} is the last that is there");
        for number in landed + 1..=found {
            reference.apply(of_number(number)).await.expect("applied");
        }
        landed = found;
        let limit = u32::MAX;
        let ours = index.list(None, limit).await.expect("listed");
        assert_eq!(ours, reference.list(None, limit).await.expect("listed"), "after {found}");
        assert_eq!(bodies(&path), expected(&reference), "after {found}");
        // What was remembered as deleted is remembered still: the batch again changes nothing.
        index.apply(of_number(found)).await.expect("the lock is free");
        assert_eq!(bodies(&path), expected(&reference), "after {found} again");
        // What the crash left was cleaned up with the first commit.
        let left: Vec<_> = unnamed(&path).intersection(&left).cloned().collect();
        assert_eq!(left, [] as [PathBuf; 0]);
    }
}

/// The files of segments that the index does not name.
fn unnamed(path: &Path) -> BTreeSet<PathBuf> {
    let index = tantivy::Index::open_in_dir(path).expect("opened");
    assert!(index.validate_checksum().expect("read").is_empty());
    let named = index.load_metas().expect("read").list_segment_files();
    let files = std::fs::read_dir(path).expect("read");
    let names = files.map(|file| PathBuf::from(file.expect("a file").file_name()));
    let of_a_segment =
        |name: &PathBuf| name.to_string_lossy().split('.').next().is_some_and(|id| id.len() == 32);
    names.filter(|name| of_a_segment(name) && !named.contains(name)).collect()
}

fn bodies(path: &Path) -> BTreeMap<String, String> {
    let documents = raw_documents(path).into_iter();
    documents.map(|(key, fields)| (key.to_string(), fields["body"].clone())).collect()
}

fn expected(reference: &MemorySink) -> BTreeMap<String, String> {
    let body = |document: &truekeep_core::Document| match document.values() {
        [Value::Text(text)] => text.to_string(),
        other => panic!("no document of this test: {other:?}"),
    };
    let contents = reference.contents();
    contents.iter().map(|(key, held)| (key.to_string(), body(&held.document))).collect()
}
