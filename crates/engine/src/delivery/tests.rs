//! The rules of delivery, over a sink that is told what to answer.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use truekeep_core::ports::{Applied, Change, MockClock, MockFeed, MockSink};
use truekeep_core::{
    BatchName, Document, Fence, Incarnation, LedgerId, MarkNumber, Value, Version,
};

use super::*;

type Answer = Result<Vec<Outcome>, PortError>;

/// The keys of each batch that was sent.
type Sizes = Arc<Mutex<Vec<Vec<String>>>>;

/// A feed that cannot be read.
const LOCKED: &[(&str, u64)] = &[("locked", 0)];

fn upsert(name: &str, bytes: usize) -> Delivery {
    let value = Value::Text("x".repeat(bytes).into());
    let document = Document::new([Box::from("text")].into(), vec![value]);
    Delivery { key: Key::new(name), rank: rank(2, 10), body: Body::Upsert(Arc::new(document)) }
}

fn deliveries(names: &str) -> Vec<Delivery> {
    names.chars().map(|name| upsert(&name.to_string(), 1)).collect()
}

fn rank(rules: u64, version: u64) -> Rank {
    Rank { rules: RulesNumber::new(rules), version: Version::new(version) }
}

fn error(class: FailureClass) -> PortError {
    PortError::new("write a batch", class, Code::SINK_REFUSED).detail("said the sink")
}

/// A sink that confirms at once and answers batches by their keys.
fn sink(answer: impl Fn(&[String]) -> Answer + Send + 'static) -> (MockSink, Sizes) {
    let batches = Sizes::default();
    let seen = Arc::clone(&batches);
    let mut sink = MockSink::new();
    sink.expect_apply().returning(move |batch| {
        let keys: Vec<_> = batch.deliveries.iter().map(|d| d.key.to_string()).collect();
        seen.lock().expect("sound").push(keys.clone());
        let receipt = Receipt(1);
        answer(&keys).map(|outcomes| Applied { outcomes, receipt })
    });
    sink.expect_confirm().returning(|_| Ok(Confirmation::Confirmed));
    (sink, batches)
}

fn applied(keys: &[String]) -> Answer {
    Ok(vec![Outcome::Applied; keys.len()])
}

/// Delivers in batches of 100 bytes, with a feed that stands at these versions.
async fn deliver(
    sink: &MockSink,
    feed: &'static [(&'static str, u64)],
    deliveries: Vec<Delivery>,
) -> Result<Sent, PortError> {
    while_ours(sink, feed, deliveries, &|| true).await
}

async fn while_ours(
    sink: &MockSink,
    present: &'static [(&'static str, u64)],
    deliveries: Vec<Delivery>,
    ours: &(dyn Fn() -> bool + Sync),
) -> Result<Sent, PortError> {
    numbered(sink, present, deliveries, ours, &mut Batches::default()).await
}

async fn numbered(
    sink: &MockSink,
    present: &'static [(&'static str, u64)],
    deliveries: Vec<Delivery>,
    ours: &(dyn Fn() -> bool + Sync),
    batches: &mut Batches,
) -> Result<Sent, PortError> {
    let mut feed = MockFeed::new();
    feed.expect_find().returning(move |keys| {
        if present == LOCKED {
            return Err(PortError::new("read", FailureClass::Retry, Code::SOURCE_LOCKED));
        }
        let row = |key: &Key| {
            let (_, version) = present.iter().find(|(name, _)| *name == key.as_str())?;
            let (key, version) = (key.clone(), Version::new(*version));
            Some(Change { key, version, stamp: version.into(), deleted: false })
        };
        Ok(keys.iter().map(row).collect())
    });
    let mut clock = MockClock::new();
    clock.expect_sleep().return_const(());
    let mark = Mark {
        ledger: LedgerId::parse("ledger").expect("valid"),
        pipeline: Incarnation::parse("life").expect("valid"),
        rules: RulesNumber::new(2),
        fence: Fence::new(1),
        number: MarkNumber::new(8),
        removed: false,
    };
    let courier = Courier {
        sink,
        feed: &feed,
        clock: &clock,
        mark,
        batch_bytes: 100,
        ours,
        pending_poll: Duration::from_millis(25),
    };
    courier.deliver(deliveries, batches).await
}

fn sizes(batches: &Sizes) -> Vec<usize> {
    batches.lock().expect("sound").iter().map(Vec::len).collect()
}

fn batch(number: u64) -> BatchName {
    BatchName { fence: Fence::new(1), number: MarkNumber::new(number) }
}

/// Rule 66.
#[tokio::test]
async fn batches_are_bounded_by_their_bytes_and_no_record_is_cut() {
    let (sink, batches) = sink(applied);
    let mut all: Vec<_> = (0..5).map(|_| upsert("a", 40)).collect();
    all.push(upsert("large", 1_000));
    all.push(upsert("b", 100));
    all.push(Delivery { body: Body::Delete, ..upsert("c", 0) });
    let sent = deliver(&sink, &[], all).await.expect("sent");
    assert_eq!(sent.fates, vec![Fate::Done; 8]);
    assert_eq!(sizes(&batches), [2, 2, 1, 1, 2]);
}

#[tokio::test]
async fn nothing_to_deliver_is_nothing_to_send() {
    let (sink, batches) = sink(applied);
    assert_eq!(deliver(&sink, &[], Vec::new()).await.expect("nothing"), Sent::default());
    assert_eq!(sizes(&batches), [0; 0]);
}

/// Rule 105.
#[tokio::test]
async fn a_batch_that_is_refused_whole_is_split_down_to_the_culprits_and_all_others_arrive() {
    let (sink, batches) = sink(|keys| {
        let bad = keys.iter().any(|key| ["c", "h"].contains(&key.as_str()));
        if bad { Err(error(FailureClass::Terminal)) } else { applied(keys) }
    });
    let sent = deliver(&sink, &[], deliveries("abcdefghij")).await.expect("sent");
    let refused =
        Fate::Refused(Code::SINK_REFUSED, "failed to write a batch: said the sink".into());
    for (at, fate) in sent.fates.iter().enumerate() {
        assert_eq!(*fate, if at == 2 || at == 7 { refused.clone() } else { Fate::Done }, "{at}");
    }
    assert!(sent.mark.is_some() && sent.fates.len() == 10);
    let batches = batches.lock().expect("sound").clone();
    let mut arrived: Vec<_> = batches
        .into_iter()
        .filter(|batch| !batch.iter().any(|key| key == "c" || key == "h"))
        .flatten()
        .collect();
    assert!(arrived.is_sorted(), "in order");
    arrived.dedup();
    assert_eq!(arrived.concat(), "abdefgij", "each once");
}

#[tokio::test]
async fn one_record_of_a_batch_may_be_refused_or_put_off_by_itself() {
    let (sink, _) = sink(|_| {
        Ok(vec![
            Outcome::Applied,
            Outcome::Refused(Code::DOCUMENT_TOO_LARGE, "large".into()),
            Outcome::Retry(Code::SINK_UNAVAILABLE, "busy".into()),
            Outcome::Repeated,
        ])
    });
    let sent = deliver(&sink, &[], deliveries("abcd")).await.expect("sent");
    let fates = [
        Fate::Done,
        Fate::Refused(Code::DOCUMENT_TOO_LARGE, "large".into()),
        Fate::Retry(Code::SINK_UNAVAILABLE, "busy".into()),
        Fate::Done,
    ];
    assert_eq!(sent.fates, fates);
    assert!(sent.mark.is_some());
}

/// F2: a mark that the sink never took must not be expected of it.
#[tokio::test]
async fn a_sink_that_took_no_batch_took_no_mark() {
    let (sink, batches) = sink(|_| Err(error(FailureClass::Terminal)));
    let sent = deliver(&sink, &[], deliveries("abc")).await.expect("judged");
    assert_eq!(sent.mark, None);
    assert!(sent.fates.iter().all(|fate| matches!(fate, Fate::Refused(..))));
    assert_eq!(sizes(&batches), [3, 1, 2, 1, 1]);
}

#[tokio::test]
async fn what_concerns_the_sink_as_a_whole_ends_the_delivery() {
    use FailureClass::{Fenced, Halted, Retry, Unknown};
    for class in [Retry, Unknown, Fenced, Halted] {
        let (sink, batches) = sink(move |_| Err(error(class)));
        let result = deliver(&sink, &[], vec![upsert("a", 100), upsert("b", 100)]).await;
        assert_eq!(result.expect_err("trouble").class, class);
        assert_eq!(sizes(&batches), [1], "nothing is sent after it");
    }
}

#[tokio::test]
async fn a_sink_that_does_not_answer_for_each_record_said_nothing() {
    for outcomes in [0, 1, 3] {
        let (sink, _) = sink(move |_| Ok(vec![Outcome::Applied; outcomes]));
        let result = deliver(&sink, &[], deliveries("ab")).await;
        assert_eq!(result.expect_err("misaligned").class, FailureClass::Unknown);
    }
}

/// Rules 10, 16.
#[tokio::test]
async fn once_the_lease_is_lost_nothing_more_is_sent() {
    let (sink, batches) = sink(applied);
    let asked = AtomicU32::new(0);
    let ours = || asked.fetch_add(1, Ordering::SeqCst) < 2;
    let all = ["a", "b", "c", "d"].map(|name| upsert(name, 100)).to_vec();
    let result = while_ours(&sink, &[], all, &ours).await;
    let error = result.expect_err("lost");
    assert_eq!((error.class, error.code), (FailureClass::Fenced, Code::LEASE_HELD));
    assert_eq!(batches.lock().expect("sound").concat(), ["a", "b"]);
}

#[tokio::test]
async fn a_batch_is_done_only_once_it_is_confirmed() {
    let mut sink = MockSink::new();
    sink.expect_apply()
        .returning(|_| Ok(Applied { outcomes: vec![Outcome::Applied], receipt: Receipt(5) }));
    let mut left = 3;
    sink.expect_confirm().times(4).returning(move |receipt| {
        assert_eq!(*receipt, Receipt(5));
        left -= 1;
        Ok(if left < 0 { Confirmation::Confirmed } else { Confirmation::Pending })
    });
    let sent = deliver(&sink, &[], deliveries("a")).await.expect("sent");
    assert_eq!(sent.fates, [Fate::Done]);
}

#[tokio::test]
async fn a_batch_whose_confirmation_fails_is_not_done() {
    let mut sink = MockSink::new();
    sink.expect_apply()
        .returning(|_| Ok(Applied { outcomes: vec![Outcome::Applied], receipt: Receipt(5) }));
    sink.expect_confirm().returning(|_| Err(error(FailureClass::Unknown)));
    let result = deliver(&sink, &[], deliveries("a")).await;
    assert_eq!(result.expect_err("unknown").class, FailureClass::Unknown);
}

/// Rule 67, X50.
#[tokio::test]
async fn something_greater_in_the_sink_is_judged_by_the_feed_as_it_is_now() {
    const FEED: &[(&str, u64)] = &[("known", 20), ("behind", 19), ("outruled", 99)];
    let cases = [
        ("known", rank(2, 20), Fate::Done),
        ("behind", rank(2, 20), Fate::Ahead),
        ("pruned", rank(2, 20), Fate::Ahead),
        ("outruled", rank(3, 5), Fate::Outruled),
    ];
    for (name, found, fate) in cases {
        let (sink, _) =
            sink(move |_| Ok(vec![Outcome::Applied, Outcome::Outdone(found), Outcome::Applied]));
        let all = vec![upsert("first", 1), upsert(name, 1), upsert("last", 1)];
        let sent = deliver(&sink, FEED, all).await.expect("sent");
        assert_eq!(sent.fates, [Fate::Done, fate, Fate::Done], "{name}");
    }
}

#[tokio::test]
async fn a_feed_that_cannot_be_read_again_leaves_the_outcome_open() {
    let (sink, _) = sink(|_| Ok(vec![Outcome::Outdone(rank(2, 20))]));
    let result = deliver(&sink, LOCKED, deliveries("a")).await;
    assert_eq!(result.expect_err("open").code, Code::SOURCE_LOCKED);
}

/// Rule 124: a sink that was backed up between two batches of one delivery is told apart from one
/// that holds them all, and no number is used twice, whatever became of a batch.
#[tokio::test]
async fn each_batch_has_a_number_of_its_own_and_names_the_one_that_is_held() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let marks = Arc::clone(&seen);
    let mut sink = MockSink::new();
    sink.expect_apply().returning(move |batch| {
        let mut marks = marks.lock().expect("sound");
        marks.push((batch.mark.number.get(), batch.follows.number.get()));
        if marks.len() == 2 {
            return Err(error(FailureClass::Unknown));
        }
        let outcomes = vec![Outcome::Applied; batch.deliveries.len()];
        Ok(Applied { outcomes, receipt: Receipt(0) })
    });
    sink.expect_confirm().returning(|_| Ok(Confirmation::Confirmed));
    let mut batches = Batches { taken: batch(8), ..Batches::default() };
    let two = || vec![upsert("a", 90), upsert("b", 90)];
    let first = numbered(&sink, &[], two(), &|| true, &mut batches).await;
    first.expect_err("nobody knows whether the second was written");
    let second = numbered(&sink, &[], two(), &|| true, &mut batches).await.expect("sent");
    let turn = MarkNumber::new(8).turn_after().get();
    assert_eq!(second.mark, Some(batch(turn + 3)));
    let expected = [(turn, 8), (turn + 1, turn), (turn + 2, turn), (turn + 3, turn + 2)];
    assert_eq!(*seen.lock().expect("sound"), expected);
}

/// A sink that stops at once may lose what it has taken and not confirmed: that is nothing to halt
/// for, so the next batch does not rely on it.
#[tokio::test]
async fn a_batch_that_was_not_confirmed_is_not_known_to_be_held() {
    let (mut sink, _) = sink(applied);
    sink.checkpoint();
    sink.expect_apply().returning(|batch| {
        let outcomes = vec![Outcome::Applied; batch.deliveries.len()];
        Ok(Applied { outcomes, receipt: Receipt(1) })
    });
    sink.expect_confirm().returning(|_| Err(error(FailureClass::Retry)));
    let mut batches = Batches { taken: batch(8), ..Batches::default() };
    let sent = numbered(&sink, &[], deliveries("a"), &|| true, &mut batches).await;
    assert_eq!(sent.expect_err("not confirmed").class, FailureClass::Retry);
    assert_eq!(batches.taken, batch(8));
}
