//! A process that is killed at any step of a swap, a rollback or a removal leaves readers what they
//! saw, or what they are to see, and what it began can be done again.

use std::env;
use std::process::Command;

use tempfile::TempDir;
use truekeep_core::SwapNumber;
use truekeep_core::ports::Outcome;

use super::*;
use crate::search::{SearchIndex, SearchRequest};
use crate::spec::{FieldKind, FieldSpec, WRITER_BYTES_MIN};

/// Tells this program, started by itself, what to begin, in which folder, and after how many steps
/// to die.
const FOLDER: &str = "TRUEKEEP_TEST_GENERATIONS";
const DEED: &str = "TRUEKEEP_TEST_DEED";
const STEPS: &str = "TRUEKEEP_TEST_STEPS";

/// Between its birth and its own program a child holds all locks of its parent, also those of other
/// tests: they are one after another.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const FIRST: Generation = Generation::new(1);
const SECOND: Generation = Generation::new(2);

fn spec() -> IndexSpec {
    let (indexed, stored, fast, required) = (true, true, false, false);
    let body = FieldSpec {
        name: "body".into(),
        kind: FieldKind::Keyword,
        indexed,
        stored,
        fast,
        required,
    };
    IndexSpec { fields: vec![body], writer_bytes: WRITER_BYTES_MIN }
}

fn number(number: u64, from: Generation, to: Generation) -> Swap {
    Swap { number: SwapNumber::new(number), from, to }
}

/// What is begun, by name.
fn steps(folder: &Path, deed: &str) -> Vec<Step> {
    let swap = |swap| steps_of_swap(folder, &swap).expect("planned").expect("it is to be done");
    match deed {
        "swap" => swap(number(1, FIRST, SECOND)),
        "rollback" => swap(number(2, SECOND, FIRST)),
        "remove 1" => steps_of_removal(folder, FIRST).expect("planned"),
        "remove 2" => steps_of_removal(folder, SECOND).expect("planned"),
        other => panic!("no deed of this test: {other}"),
    }
}

/// What the child does; without its variable it is a test of nothing.
#[test]
fn child_dies_between_two_steps() {
    let Some(folder) = env::var_os(FOLDER).map(PathBuf::from) else { return };
    let deed = env::var(DEED).expect("given");
    let count: usize = env::var(STEPS).expect("given").parse().expect("a number");
    let _alone = alone(&folder).expect("nobody else swaps");
    for step in &steps(&folder, &deed)[..count] {
        step.take().expect("taken");
    }
    std::process::abort();
}

fn killed_after(count: usize, folder: &Path, deed: &str) {
    let status = Command::new(env::current_exe().expect("this program"))
        .args(["--exact", "generations::tests::child_dies_between_two_steps", "--test-threads=1"])
        .env(FOLDER, folder)
        .env(DEED, deed)
        .env(STEPS, count.to_string())
        .output()
        .expect("started")
        .status;
    assert!(!status.success(), "it died");
}

/// Two generations with one record each; swapped if it is asked for.
async fn two(swapped: bool) -> (TempDir, PathBuf, TantivyGenerations) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("index");
    let generations = TantivyGenerations::new(&path, &spec()).expect("named");
    for (generation, body) in [(FIRST, "first"), (SECOND, "second")] {
        fill(&generations, generation, body).await;
    }
    if swapped {
        generations.swap(&number(1, FIRST, SECOND)).await.expect("swapped");
    }
    (folder, path, generations)
}

async fn fill(generations: &TantivyGenerations, generation: Generation, body: &str) {
    let sink = generations.open(generation).await.expect("opened");
    sink.prepare().await.expect("prepared");
    assert_eq!(sink.mark().await.expect("read"), None, "it begins empty");
    assert!(sink.list(None, 10).await.expect("listed").entries.is_empty());
    let written = sink.apply(batch(body)).await.expect("applied");
    assert_eq!(written.outcomes, [Outcome::Applied]);
}

fn seen(path: &Path) -> Vec<String> {
    let index = SearchIndex::open(path).expect("opened").expect("it is there");
    let found = index.search(&SearchRequest { query: "*", fields: &[], limit: 10 });
    let hits = found.expect("searched").hits;
    hits.iter().map(|hit| hit.fields["body"].as_str().expect("text").to_owned()).collect()
}

/// X12: in a swap and in a rollback the name is replaced last, and by one step.
#[tokio::test]
async fn killed_swap_is_done_whole_or_not_at_all() {
    let _alone = ALONE.lock().await;
    for (deed, swap, before, after) in [
        ("swap", number(1, FIRST, SECOND), "first", "second"),
        ("rollback", number(2, SECOND, FIRST), "second", "first"),
    ] {
        for count in 0..=4 {
            let (_folder, path, generations) = two(deed == "rollback").await;
            let planned = steps(&path, deed);
            assert_eq!(planned.len(), 4);
            let named = planned.iter().position(|step| matches!(step, Step::Rename(..)));
            let done = count > named.expect("it has a name");
            killed_after(count, &path, deed);
            let now = if done { after } else { before };
            assert_eq!(seen(&path), [now], "{deed} after {count} steps");
            let survey = generations.survey().await.expect("a survey");
            assert_eq!(survey.held, [FIRST, SECOND]);
            assert_eq!(survey.served.generation == swap.to, done);
            let again = generations.swap(&swap).await.expect("it can be done again");
            assert_eq!((again, seen(&path)), (Swapped::Done, vec![after.to_owned()]));
        }
    }
}

/// What is removed in part is no generation any more: it is never swapped in, is removed for good
/// by a repeat, and begins empty if it is made again.
#[tokio::test]
async fn killed_removal_leaves_nothing_that_readers_could_see() {
    let _alone = ALONE.lock().await;
    for (deed, removed, swapped) in [("remove 1", FIRST, true), ("remove 2", SECOND, false)] {
        let (served, body) = if swapped { (SECOND, "second") } else { (FIRST, "first") };
        let all = {
            let (_folder, path, _) = two(swapped).await;
            steps(&path, deed).len()
        };
        assert!(all > 8, "the files of a segment");
        for count in 0..=all {
            for again in [false, true] {
                let (_folder, path, generations) = two(swapped).await;
                killed_after(count, &path, deed);
                assert_eq!(seen(&path), [body], "{deed} after {count} steps");
                let back = generations.swap(&number(7, served, removed)).await;
                if count == 0 {
                    assert_eq!(back.expect("it is whole"), Swapped::Done);
                    continue;
                }
                let error = back.expect_err("it is not whole");
                assert_eq!(error.code, Code::GENERATION_MISSING, "after {count} steps");
                if again {
                    generations.discard(removed).await.expect("removed");
                    let held = generations.survey().await.expect("a survey").held;
                    assert_eq!(held, [served], "after {count} steps");
                }
                fill(&generations, removed, "anew").await;
                assert_eq!(seen(&path), [body]);
            }
        }
    }
}

/// Rule 115: the name is on disk when a swap has returned, and what it means before it.
#[tokio::test]
async fn swap_syncs_what_a_name_means_before_the_name() {
    let _alone = ALONE.lock().await;
    let (_folder, path, _) = two(false).await;
    let (beside, named) = (path.join(SERVED_BESIDE), path.join(SERVED));
    let planned = steps(&path, "swap");
    let [Step::Write(written, _), sync, rename, last] = &*planned else { panic!("{planned:?}") };
    assert_eq!(*written, beside);
    assert_eq!(*sync, Step::Sync(beside.clone()));
    assert_eq!(*rename, Step::Rename(beside, named));
    assert_eq!(*last, Step::Sync(path.clone()));
    let planned = steps(&path, "remove 2");
    let own = path.join("generation-2");
    assert_eq!(planned[..2], [Step::Remove(own.join(META)), Step::Sync(own)]);
    assert_eq!(planned.last(), Some(&Step::Sync(path)));
}

/// Two that swap at once are one after the other: the second sees what the first has done.
#[tokio::test]
async fn swap_beside_another_is_tried_again() {
    let _alone = ALONE.lock().await;
    let (_folder, path, generations) = two(false).await;
    let held = alone(&path).expect("nobody else swaps");
    for error in [
        generations.swap(&number(1, FIRST, SECOND)).await.expect_err("another swaps"),
        generations.discard(SECOND).await.expect_err("another swaps"),
    ] {
        assert_eq!((error.class, error.code), (FailureClass::Retry, Code::SINK_LOCKED));
    }
    assert_eq!(seen(&path), ["first"]);
    drop(held);
    generations.swap(&number(1, FIRST, SECOND)).await.expect("swapped");
}

/// A reader that has read a generation's name makes a lock in its folder, even if that is being
/// removed; anything else in it is nobody's to remove.
#[test]
fn removal_takes_late_readers_locks_along() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("generation-2");
    for (name, removed) in [(&*META_LOCK.filepath, true), (Path::new("notes.txt"), false)] {
        std::fs::create_dir(&own).expect("made");
        std::fs::write(own.join(name), "").expect("written");
        let taken = Step::RemoveFolder(own.clone()).take();
        assert_eq!((taken.is_ok(), own.exists()), (removed, !removed), "{}", name.display());
    }
}

#[test]
fn name_of_a_generation_is_one_of_ours_and_no_other() {
    let all = [1, 2, 10, u64::MAX].map(Generation::new);
    for generation in all {
        let folder = folder_of(Path::new("index"), generation);
        assert_eq!(is_of_a_generation(&folder), generation != FIRST);
    }
    for name in ["generation-1", "generation-02", "generation-+2", "generation-", "generation"] {
        assert_eq!(of_name(name), None, "{name}");
    }
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
