//! The rules of every sink with generations.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Batch, Generations, Served, Sink, Survey, Swap, Swapped};
use truekeep_core::{Generation, Key, SwapNumber};

use crate::sink::batches::{before, delete, listed, mark, rank, upsert};

/// A sink with generations as a test holds it: never written.
///
/// Documents have one value, the text `body`.
#[async_trait]
pub trait GenerationsUnderTest: Debug + Send + Sync {
    /// The port.
    fn generations(&self) -> Arc<dyn Generations>;

    /// Ends the sink and opens it again, as a process that starts anew would.
    async fn reopen(&mut self);

    /// The live records that readers see and their `body`, read past the port as a reader would.
    async fn seen(&self) -> BTreeMap<Key, String>;
}

const FIRST: Generation = Generation::new(1);
const SECOND: Generation = Generation::new(2);
const THIRD: Generation = Generation::new(3);

fn swap(number: u64, from: Generation, to: Generation) -> Swap {
    Swap { number: SwapNumber::new(number), from, to }
}

async fn prepared(subject: &dyn GenerationsUnderTest, generation: Generation) -> Arc<dyn Sink> {
    let sink = subject.generations().open(generation).await.expect("opened");
    sink.prepare().await.expect("prepared");
    sink
}

/// Writes one record of this body, as the batch of this number.
async fn write(sink: &dyn Sink, number: u64, text: &str, body: &str) {
    let deliveries = vec![upsert(text, rank(1, number), body)];
    let follows = before(&mark(1, number), 1);
    let applied = sink.apply(Batch { mark: mark(1, number), follows, deliveries }).await;
    sink.confirm(&applied.expect("admitted").receipt).await.expect("confirmed");
}

async fn survey(subject: &dyn GenerationsUnderTest) -> Survey {
    subject.generations().survey().await.expect("a survey")
}

async fn assert_seen(subject: &dyn GenerationsUnderTest, expected: &[(&str, &str)]) {
    let expected: BTreeMap<Key, String> =
        expected.iter().map(|(text, body)| (Key::new(*text), (*body).to_owned())).collect();
    assert_eq!(subject.seen().await, expected);
}

/// Two generations with one record each, of which the first is seen.
async fn two(subject: &dyn GenerationsUnderTest) -> (Arc<dyn Sink>, Arc<dyn Sink>) {
    let (first, second) = (prepared(subject, FIRST).await, prepared(subject, SECOND).await);
    write(&*first, 1, "k", "first").await;
    write(&*second, 1, "k", "second").await;
    (first, second)
}

/// A sink that was never swapped serves its first generation, and a survey makes nothing.
pub async fn first_generation_is_what_readers_see(subject: &mut dyn GenerationsUnderTest) {
    for _ in 0..2 {
        assert_eq!(survey(subject).await.served, Served::FIRST);
    }
    let first = prepared(subject, FIRST).await;
    write(&*first, 1, "k", "first").await;
    subject.reopen().await;
    assert_seen(subject, &[("k", "first")]).await;
    assert_eq!(survey(subject).await, Survey { served: Served::FIRST, held: vec![FIRST] });
}

/// X12: what is written into a generation that is not served is seen by nobody, and has ranks,
/// deletions and a mark of its own.
pub async fn generations_know_nothing_of_each_other(subject: &mut dyn GenerationsUnderTest) {
    let (first, second) = two(subject).await;
    write(&*second, 2, "other", "second").await;
    assert_seen(subject, &[("k", "first")]).await;
    assert_eq!(first.mark().await.expect("a mark"), Some(mark(1, 1)));
    assert_eq!(second.mark().await.expect("a mark"), Some(mark(1, 2)));
    let gone = Batch {
        mark: mark(1, 3),
        follows: mark(1, 2).batch(),
        deliveries: vec![delete("k", rank(1, 9))],
    };
    second.apply(gone).await.expect("admitted");
    write(&*first, 2, "k", "newer").await;
    assert_seen(subject, &[("k", "newer")]).await;
    let keys: Vec<_> = listed(&*second, 10).await.into_iter().map(|entry| entry.key).collect();
    assert_eq!(keys, [Key::new("other")]);
    assert_eq!(survey(subject).await, Survey { served: Served::FIRST, held: vec![FIRST, SECOND] });
}

/// Rule 115: a swap changes everything that readers see at once, for good; what they saw is kept.
pub async fn swap_is_whole_and_lasts(subject: &mut dyn GenerationsUnderTest) {
    two(subject).await;
    let done = subject.generations().swap(&swap(1, FIRST, SECOND)).await.expect("swapped");
    assert_eq!(done, Swapped::Done);
    for _ in 0..2 {
        assert_seen(subject, &[("k", "second")]).await;
        let served = Served { generation: SECOND, swap: SwapNumber::new(1) };
        assert_eq!(survey(subject).await, Survey { served, held: vec![FIRST, SECOND] });
        subject.reopen().await;
    }
    let second = prepared(subject, SECOND).await;
    write(&*second, 2, "k", "goes on").await;
    assert_seen(subject, &[("k", "goes on")]).await;
    let first = prepared(subject, FIRST).await;
    write(&*first, 2, "k", "unseen").await;
    assert_seen(subject, &[("k", "goes on")]).await;
}

/// X12: a repeated swap is done once; one that began from something else, or is late, moves
/// nothing.
pub async fn swap_is_conditional(subject: &mut dyn GenerationsUnderTest) {
    two(subject).await;
    prepared(subject, THIRD).await;
    let port = subject.generations();
    for _ in 0..2 {
        let done = port.swap(&swap(2, FIRST, SECOND)).await.expect("swapped");
        assert_eq!(done, Swapped::Done);
    }
    let served = Served { generation: SECOND, swap: SwapNumber::new(2) };
    for late in [swap(1, FIRST, SECOND), swap(3, FIRST, THIRD), swap(2, SECOND, THIRD)] {
        let conflict = port.swap(&late).await.expect("judged");
        assert_eq!(conflict, Swapped::Conflict(served), "{late:?}");
    }
    assert_seen(subject, &[("k", "second")]).await;
    let back = port.swap(&swap(3, SECOND, FIRST)).await.expect("rolled back");
    assert_eq!(back, Swapped::Done);
    assert_seen(subject, &[("k", "first")]).await;
    let again = port.swap(&swap(2, FIRST, SECOND)).await.expect("judged");
    assert!(matches!(again, Swapped::Conflict(_)), "a swap of before the rollback is late");
    assert_seen(subject, &[("k", "first")]).await;
}

/// A generation that is not there is never swapped in.
pub async fn missing_generation_is_not_swapped_in(subject: &mut dyn GenerationsUnderTest) {
    two(subject).await;
    let error = subject.generations().swap(&swap(1, FIRST, THIRD)).await.expect_err("missing");
    assert_eq!((error.class, error.code), (FailureClass::Terminal, Code::GENERATION_MISSING));
    assert_seen(subject, &[("k", "first")]).await;
    assert_eq!(survey(subject).await.served, Served::FIRST);
}

/// A generation that is removed takes no room and comes back empty; what is seen is never removed.
pub async fn discarded_generation_is_gone(subject: &mut dyn GenerationsUnderTest) {
    two(subject).await;
    let port = subject.generations();
    let error = port.discard(FIRST).await.expect_err("readers see it");
    assert_eq!((error.class, error.code), (FailureClass::Terminal, Code::GENERATION_SERVED));
    port.swap(&swap(1, FIRST, SECOND)).await.expect("swapped");
    for _ in 0..2 {
        port.discard(FIRST).await.expect("removed");
        subject.reopen().await;
        assert_eq!(survey(subject).await.held, [SECOND]);
    }
    assert_seen(subject, &[("k", "second")]).await;
    let first = prepared(subject, FIRST).await;
    assert_eq!(first.mark().await.expect("a mark"), None);
    assert!(listed(&*first, 10).await.is_empty());
    write(&*first, 1, "k", "anew").await;
    assert_seen(subject, &[("k", "second")]).await;
}

/// Makes one test per rule; `$open` is a path to an async function without arguments that makes
/// a [`GenerationsUnderTest`], or a block that makes one, or returns where there is nothing to test
/// with.
#[macro_export]
macro_rules! generation_rules {
    ($open:path) => {
        $crate::generation_rules!({ $open().await });
    };
    ($open:block) => {
        $crate::generation_rules! { $open:
            discarded_generation_is_gone,
            first_generation_is_what_readers_see,
            generations_know_nothing_of_each_other,
            missing_generation_is_not_swapped_in,
            swap_is_conditional,
            swap_is_whole_and_lasts,
        }
    };
    ($open:block: $($rule:ident,)*) => {$(
        #[tokio::test]
        async fn $rule() {
            let mut subject = $open;
            $crate::generations::$rule(&mut subject).await;
        }
    )*};
}
