//! Records that do not go straight through: parked, put off, tried again.

use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{ItemKind, ItemState, Items, Retried};
use truekeep_core::{Moment, Version};
use truekeep_engine::Ending;
use truekeep_sink_memory::Held;

use crate::world::tap::{Fault, Grudge};
use crate::world::{World, key, pass, pass_ms, row};

impl World {
    async fn retry(&self, name: &str) -> Retried {
        self.ledger.retry(&Self::scope(), &key(name)).await.expect("answered")
    }

    async fn counts(&self) -> (State, u64, u64) {
        let certificate = self.certificate().await;
        (certificate.state, certificate.parked, certificate.unsettled)
    }
}

/// Rules 69, 101, 105.
#[tokio::test(start_paused = true)]
async fn a_refused_record_is_parked_and_delivered_once_an_operator_asks() {
    for grudge in [Grudge::Refuses, Grudge::RefusesBatch] {
        let world = World::new();
        world.rows(0..10, "first");
        let process = world.process();
        process.tap.bear("00003", grudge);
        assert_eq!(process.drain().await, Ending::Drained);
        assert_eq!(world.differences(), [row(3)]);
        assert_eq!(world.counts().await, (State::Partial, 1, 0));
        let item = world.item("00003").await.expect("parked");
        assert_eq!((item.state, item.attempts, item.version.get()), (ItemState::Parked, 1, 4));
        process.drain().await;
        assert_eq!(world.counts().await, (State::Partial, 1, 0), "nobody asked");
        process.tap.heal();
        assert_eq!(world.retry("00003").await, Retried::Pending);
        assert_eq!(world.counts().await, (State::Partial, 0, 1), "said before it is delivered");
        process.tap.forget_log();
        assert_eq!(process.drain().await, Ending::Drained);
        assert_eq!(process.tap.sent(), [row(3)]);
        assert!(world.equal());
        assert_eq!(world.counts().await, (State::Complete, 0, 0));
    }
}

/// Rule 65: its document cannot be made; newer source data mends it with no operator.
#[tokio::test(start_paused = true)]
async fn a_record_that_cannot_be_loaded_is_parked_until_its_row_changes() {
    let world = World::new();
    world.rows(0..10, "first");
    world.source.put_unloadable(&row(3), Code::DOCUMENT_TOO_LARGE, "17 MB");
    let process = world.process();
    process.drain().await;
    assert_eq!(world.counts().await, (State::Partial, 1, 0));
    let item = world.item("00003").await.expect("parked");
    assert_eq!((item.code, item.reason.as_str()), (Code::DOCUMENT_TOO_LARGE, "17 MB"));
    assert_eq!(process.tap.sent().len(), 9);
    world.rows(3..4, "smaller");
    process.drain().await;
    assert!(world.equal());
    assert_eq!(world.counts().await, (State::Complete, 0, 0));
}

/// Rule 42: the moment never passes a record that is still being tried.
#[tokio::test(start_paused = true)]
async fn a_record_that_is_put_off_holds_the_moment_back_until_it_arrives() {
    let world = World::new();
    world.rows(0..10, "first");
    let process = world.process();
    let running = process.start();
    pass(2).await;
    process.tap.bear("00003", Grudge::PutsOff);
    world.rows(0..10, "second");
    pass_ms(500).await;
    assert_eq!(world.differences(), [row(3)]);
    let certificate = world.certificate().await;
    assert_eq!(certificate.moment, Some(Moment::at(Version::new(10))));
    assert_eq!(world.item("00003").await.map(|item| item.state), Some(ItemState::Retry));
    pass(5).await;
    world.rows(5..6, "third");
    pass_ms(500).await;
    assert_eq!(world.differences(), [row(3)], "the others go on");
    assert_eq!(world.certificate().await.moment, certificate.moment);
    process.tap.heal();
    pass(20).await;
    assert!(world.equal());
    assert_eq!(world.counts().await, (State::Complete, 0, 0));
    assert_eq!(world.certificate().await.moment, Some(Moment::at(Version::new(21))));
    running.stop().await;
}

/// Rules 80, 93.
#[tokio::test(start_paused = true)]
async fn a_record_that_is_put_off_too_often_is_parked() {
    let world = World::new();
    world.rows(0..3, "first");
    let process = world.process();
    process.tap.bear("00001", Grudge::PutsOff);
    let running = process.start();
    pass(3_600).await;
    let item = world.item("00001").await.expect("parked");
    let attempts_max = world.settings.delivery.attempts_max;
    assert_eq!((item.state, item.attempts), (ItemState::Parked, attempts_max));
    assert_eq!(item.code, Code::SINK_UNAVAILABLE);
    assert_eq!(world.counts().await, (State::Partial, 1, 0));
    running.stop().await;
}

/// Rules 95, 105: trouble of the sink as a whole parks nothing.
#[tokio::test(start_paused = true)]
async fn an_outage_of_sink_or_source_burns_no_attempt() {
    for calls in ["sink.apply", "feed.find", "records.load"] {
        let world = World::new();
        world.rows(0..3, "first");
        let process = world.process();
        process.tap.bear("00001", Grudge::PutsOff);
        let running = process.start();
        pass_ms(100).await;
        process.tap.fault(calls, u32::MAX, Fault::Fails(FailureClass::Retry));
        pass(3_600).await;
        let item = world.item("00001").await.expect("an item");
        assert_eq!((item.state, item.attempts), (ItemState::Retry, 1), "{calls}");
        assert!(process.tap.count(calls) > 6, "{calls}");
        process.tap.heal();
        pass(1_000).await;
        assert!(world.equal());
        assert_eq!(world.counts().await, (State::Complete, 0, 0));
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_sink_that_needs_an_operator_burns_no_attempt() {
    let world = World::new();
    world.rows(0..3, "first");
    let process = world.process();
    process.tap.bear("00001", Grudge::PutsOff);
    let running = process.start();
    pass_ms(100).await;
    process.tap.fault("sink.apply", u32::MAX, Fault::Fails(FailureClass::Halted));
    pass(3_600).await;
    assert_eq!(world.item("00001").await.expect("an item").attempts, 1);
    process.tap.heal();
    pass(60).await;
    assert!(world.equal());
    running.stop().await;
}

/// F2: the sink took no batch, and so no mark.
#[tokio::test(start_paused = true)]
async fn a_page_of_refused_records_is_no_sink_that_went_back() {
    let world = World::new();
    world.rows(0..2, "first");
    let process = world.process();
    process.tap.bear("00000", Grudge::RefusesBatch);
    process.tap.bear("00001", Grudge::RefusesBatch);
    process.drain().await;
    assert_eq!(world.counts().await, (State::Partial, 2, 0));
    process.tap.heal();
    world.retry("00000").await;
    world.retry("00001").await;
    assert_eq!(process.drain().await, Ending::Drained);
    assert!(world.equal());
}

/// Rule 106, X18.
#[tokio::test(start_paused = true)]
async fn a_parked_delete_is_tried_again_as_a_delete() {
    let world = World::new();
    world.rows(0..3, "first");
    let process = world.process();
    process.drain().await;
    world.source.delete(&row(1));
    process.tap.bear("00001", Grudge::Refuses);
    process.drain().await;
    assert_eq!(world.item("00001").await.expect("parked").kind, ItemKind::Delete);
    assert_eq!(world.differences(), [row(1)]);
    process.tap.heal();
    world.retry("00001").await;
    process.drain().await;
    assert!(world.equal());
    assert_eq!(world.counts().await, (State::Complete, 0, 0));
}

/// Rules 68 and 106, X18: an item whose tombstone was pruned is still a delete.
#[tokio::test(start_paused = true)]
async fn an_item_whose_feed_row_is_gone_is_delivered_all_the_same() {
    let world = World::new();
    world.rows(0..3, "first");
    let process = world.process();
    process.drain().await;
    world.source.delete(&row(1));
    process.tap.bear("00001", Grudge::Refuses);
    let running = process.start();
    pass(3).await;
    world.rows(2..3, "second");
    pass(3).await;
    running.stop().await;
    process.tap.heal();
    world.retry("00001").await;
    assert_eq!(process.drain().await, Ending::Drained);
    assert!(world.equal());
}

/// A worker that is to end when nothing is due delivers all items that are, over many claims, in
/// batches of bounded size, and the feed has its turns in between.
#[tokio::test(start_paused = true)]
async fn all_items_that_are_due_are_delivered_and_the_feed_with_them() {
    let mut world = World::new();
    world.settings.page_bytes = 50;
    world.rows(0..250, "first");
    let process = world.process();
    for n in 0..250 {
        process.tap.bear(row(n).as_str(), Grudge::Refuses);
    }
    process.drain().await;
    assert_eq!(world.counts().await, (State::Partial, 250, 0));
    process.tap.heal();
    process.tap.forget_log();
    for n in 0..250 {
        assert_eq!(world.retry(row(n).as_str()).await, Retried::Pending);
    }
    world.rows(300..302, "first");
    assert_eq!(process.drain().await, Ending::Drained);
    assert!(world.equal());
    assert_eq!(world.counts().await, (State::Complete, 0, 0));
    assert_eq!(process.tap.sent().len(), 252, "each once");
    let sent = process.tap.sent();
    let feed = sent.iter().position(|key| *key == row(300)).expect("sent");
    assert!(feed < 150, "the feed had a turn after the first claim, not the last");
    assert!(process.tap.count("records.load") >= 25, "ten documents at most at once");
}

/// An operator asks for a record that no trouble was known of.
#[tokio::test(start_paused = true)]
async fn a_record_that_an_operator_asks_for_is_sent_again() {
    let world = World::new();
    world.rows(0..3, "first");
    let process = world.process();
    process.drain().await;
    world.sink.lose(&row(1));
    let version = Version::new(2);
    let asked = world.ledger.request(&World::scope(), &row(1), version, ItemKind::Upsert).await;
    assert_eq!(asked.expect("answered"), Retried::Pending);
    process.tap.forget_log();
    process.drain().await;
    assert_eq!(process.tap.sent(), [row(1)]);
    assert!(world.equal());
    assert_eq!(world.counts().await, (State::Complete, 0, 0));
}

/// Rule 63, 67: the newest version wins, whichever way it comes.
#[tokio::test(start_paused = true)]
async fn an_item_is_delivered_as_its_row_is_now() {
    let world = World::new();
    world.rows(0..3, "first");
    let process = world.process();
    process.tap.bear("00001", Grudge::Refuses);
    process.drain().await;
    process.tap.heal();
    world.retry("00001").await;
    world.rows(1..2, "second");
    process.tap.forget_log();
    process.drain().await;
    assert!(world.equal());
    assert_eq!(world.counts().await, (State::Complete, 0, 0));
    world.source.delete(&row(2));
    process.drain().await;
    assert!(world.equal());
}

/// An item may outlive what the feed remembers of its record, and the sink may remember a newer
/// deletion: that is no sink that is ahead, and what somebody else put there is removed.
#[tokio::test(start_paused = true)]
async fn an_item_of_a_record_that_the_feed_has_forgotten_is_delivered_under_a_new_number() {
    let world = World::new();
    world.rows(0..10, "first");
    world.drain().await;
    world.source.delete(&row(3));
    world.drain().await;
    pass(2).await;
    world.rows(0..1, "later");
    let running = world.process().start();
    pass(5).await;
    running.stop().await;
    assert!(!world.source.feed().contains_key(&row(3)), "its tombstone was pruned");
    let foreign = Held { rank: None, ..world.sink.contents()[&row(4)].clone() };
    world.sink.plant(row(3), foreign);
    let (scope, key) = (World::scope(), row(3));
    let wish = world.ledger.request(&scope, &key, Version::new(1), ItemKind::Delete);
    assert_eq!(wish.await.expect("answered"), Retried::Pending);
    assert_eq!(world.drain().await, Ending::Drained);
    assert!(world.equal(), "{:?}", world.differences());
    assert_eq!(world.counts().await, (State::Complete, 0, 0));
}
