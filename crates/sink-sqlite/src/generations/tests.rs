//! A process that is killed at any step of a swap leaves readers what they saw before.

use std::env;
use std::process::Command;

use truekeep_core::ports::Outcome;

use super::*;
use crate::spec::{Layout, MirrorColumn};

/// Tells this program, started by itself, which file to swap in and after how many steps to die.
const FILE: &str = "TRUEKEEP_TEST_SWAP";
const STEPS: &str = "TRUEKEEP_TEST_STEPS";

fn spec() -> MirrorSpec {
    let body = MirrorColumn { name: "body".into(), declared: "TEXT".into() };
    MirrorSpec { table: "mirror".into(), layout: Layout::Columns(vec![body]) }
}

fn swap() -> Swap {
    let (from, to) = (Generation::new(1), Generation::new(2));
    Swap { number: SwapNumber::new(1), from, to }
}

/// What the child does; without its variable it is a test of nothing.
#[test]
fn child_dies_in_a_swap() {
    let Some(path) = env::var_os(FILE) else { return };
    let count: usize = env::var(STEPS).expect("given").parse().expect("a number");
    let db = Connection::open(path).expect("opened");
    db.execute_batch("PRAGMA legacy_alter_table = 1; BEGIN IMMEDIATE").expect("begun");
    let steps = Placed::new(spec(), Generation::new(2)).steps(&db, &swap()).expect("planned");
    for step in &steps[..count] {
        db.execute_batch(step).expect(step);
    }
    std::process::abort();
}

fn seen(path: &Path) -> Vec<String> {
    let db = Connection::open(path).expect("opened");
    let whole: String =
        db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("checked");
    assert_eq!(whole, "ok");
    let mut read = db
        .prepare("SELECT body FROM mirror INDEXED BY by_body WHERE body <> ''")
        .expect("the index is there");
    let rows = read.query_map([], |row| row.get(0)).expect("read");
    rows.collect::<Result<_, _>>().expect("read")
}

#[tokio::test]
async fn killed_swap_is_no_swap() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mirror.db");
    let generations = SqliteGenerations::open(&path, spec(), Duration::from_secs(5)).await;
    let generations = generations.expect("opened");
    for (generation, body) in [(1, "first"), (2, "second")] {
        let sink = generations.open(Generation::new(generation)).await.expect("opened");
        sink.prepare().await.expect("prepared");
        let written = sink.apply(batch(body)).await.expect("applied");
        assert_eq!(written.outcomes, [Outcome::Applied]);
    }
    let index = "CREATE INDEX by_body ON mirror (body) WHERE body <> ''";
    Connection::open(&path).expect("opened").execute_batch(index).expect("made");
    let db = Connection::open(&path).expect("opened");
    let steps = Placed::new(spec(), Generation::new(2)).steps(&db, &swap()).expect("planned").len();
    assert!(steps > 8, "six renames, an index twice, and what is served");
    for count in 0..=steps {
        let status = Command::new(env::current_exe().expect("this program"))
            .args(["--exact", "generations::tests::child_dies_in_a_swap", "--test-threads=1"])
            .env(FILE, &path)
            .env(STEPS, count.to_string())
            .output()
            .expect("started")
            .status;
        assert!(!status.success(), "it died");
        assert_eq!(seen(&path), ["first"], "after {count} steps");
        let survey = generations.survey().await.expect("a survey");
        assert_eq!(survey.served, Served::FIRST);
        assert_eq!(survey.held, [Generation::new(1), Generation::new(2)]);
    }
    assert_eq!(generations.swap(&swap()).await.expect("swapped"), Swapped::Done);
    assert_eq!(seen(&path), ["second"]);
}

fn batch(body: &str) -> truekeep_core::ports::Batch {
    use truekeep_core::ports::{Batch, Body, Delivery, Mark};
    use truekeep_core::{
        BatchName, Document, Fence, Incarnation, Key, LedgerId, MarkNumber, Rank, RulesNumber,
        Value, Version,
    };
    let document = Document::new(Arc::new(["body".into()]), vec![Value::Text(body.into())]);
    Batch {
        mark: Mark {
            ledger: LedgerId::parse("ledger").expect("a token"),
            pipeline: Incarnation::parse("pipeline").expect("a token"),
            rules: RulesNumber::new(1),
            fence: Fence::new(1),
            number: MarkNumber::new(1),
            removed: false,
        },
        follows: BatchName::default(),
        deliveries: vec![Delivery {
            key: Key::new("k"),
            rank: Rank { rules: RulesNumber::new(1), version: Version::new(1) },
            body: Body::Upsert(Arc::new(document)),
        }],
    }
}
