//! A process that is killed in the middle of a batch leaves the whole batch or nothing of it.

use std::collections::BTreeMap;
use std::env;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use truekeep_core::ports::{Batch, Body, Delivery, Mark, Sink};
use truekeep_core::{
    BatchName, Document, Fence, Incarnation, Key, LedgerId, MarkNumber, Rank, RulesNumber, Value,
    Version,
};
use truekeep_sink_memory::MemorySink;
use truekeep_sink_sqlite::{Layout, MirrorColumn, MirrorSpec, SqliteSink};

/// Tells this program, started by itself, which file to write.
const FILE: &str = "TRUEKEEP_TEST_MIRROR";
const LANDED: &str = "landed ";

/// New records, an update of earlier ones, a delete of some, as batch number `number`.
fn batch(number: u64) -> Batch {
    let names: Arc<[Box<str>]> = Arc::new(["body".into()]);
    let rank = Rank { rules: RulesNumber::new(1), version: Version::new(number) };
    let upsert = |key: u64| {
        let text = format!("{number} {}", "x".repeat(400)).into();
        let document = Document::new(Arc::clone(&names), vec![Value::Text(text)]);
        (key, Body::Upsert(Arc::new(document)))
    };
    let (new, updated, deleted) = (number * 100, (number / 2) * 100, (number - 1) * 100 + 60);
    let deliveries: BTreeMap<u64, Body> = (new..new + 90)
        .chain(updated..updated + 40)
        .map(upsert)
        .chain((deleted..deleted + 20).map(|key| (key, Body::Delete)))
        .collect();
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
        deliveries: deliveries
            .into_iter()
            .map(|(key, body)| Delivery { key: Key::new(key.to_string()), rank, body })
            .collect(),
    }
}

async fn open(path: &Path) -> SqliteSink {
    let body = MirrorColumn { name: "body".into(), declared: "TEXT".into() };
    let spec = MirrorSpec { table: "mirror".into(), layout: Layout::Columns(vec![body]) };
    let sink = SqliteSink::open(path, spec, Duration::from_secs(5)).await.expect("opened");
    sink.prepare().await.expect("prepared");
    sink
}

async fn number(sink: &dyn Sink) -> u64 {
    sink.mark().await.expect("read").map_or(0, |mark| mark.number.get())
}

/// What the child does until it is killed; without its variable it is a test of nothing.
#[tokio::test]
async fn child_writes_batches() {
    let Some(path) = env::var_os(FILE) else { return };
    let sink = open(Path::new(&path)).await;
    let mut next = number(&sink).await + 1;
    loop {
        sink.apply(batch(next)).await.expect("applied");
        // Past the capture of test output; the parent reads each line as it comes.
        writeln!(stdout(), "{LANDED}{next}").and_then(|()| stdout().flush()).expect("told");
        next += 1;
    }
}

/// Lets a child write and kills it once it has told of `batches`; returns the last it told of.
fn killed_after(path: &Path, batches: usize) -> u64 {
    let mut child = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", "child_writes_batches", "--nocapture", "--test-threads=1"])
        .env(FILE, path)
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
async fn killed_writer_leaves_whole_batches() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mirror.db");
    let reference = MemorySink::new();
    let mut landed = 0;
    for batches in [1, 2, 1, 3, 7, 1, 5, 2, 1, 4] {
        let told = killed_after(&path, batches);
        let mirror = open(&path).await;
        let found = number(&mirror).await;
        assert!(found >= told, "batch {told} was told of, and {found} is the last that is there");
        for number in landed + 1..=found {
            reference.apply(batch(number)).await.expect("applied");
        }
        landed = found;
        let limit = u32::MAX;
        let ours = mirror.list(None, limit).await.expect("listed");
        assert_eq!(ours, reference.list(None, limit).await.expect("listed"), "after {found}");
        assert_eq!(bodies(&path), expected(&reference), "after {found}");
        // What was remembered as deleted is remembered still: the batch again changes nothing.
        mirror.apply(batch(found)).await.expect("applied");
        assert_eq!(bodies(&path), expected(&reference), "after {found} again");
    }
}

fn bodies(path: &Path) -> BTreeMap<String, String> {
    let db = Connection::open(path).expect("opened");
    let whole: String =
        db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checked");
    assert_eq!(whole, "ok");
    let mut read = db.prepare("SELECT _key, body FROM mirror").expect("prepared");
    let rows = read.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("read");
    rows.collect::<Result<_, _>>().expect("read")
}

fn expected(reference: &MemorySink) -> BTreeMap<String, String> {
    let body = |document: &Document| match document.values() {
        [Value::Text(text)] => text.to_string(),
        other => panic!("no document of this test: {other:?}"),
    };
    let contents = reference.contents();
    contents.iter().map(|(key, held)| (key.to_string(), body(&held.document))).collect()
}
