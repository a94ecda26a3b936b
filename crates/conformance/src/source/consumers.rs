//! Rules of registrations and of the tombstones that they hold back.

use super::*;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;

fn registration(counter: u64, passed: Moment) -> Registration {
    Registration { counter: RegistrationCounter::new(counter), passed }
}

async fn registered(source: &dyn SourceUnderTest, name: &str) -> Option<Registration> {
    let view = source.feed().view(&consumer(name), &Place::START).await.expect("a view");
    view.registration
}

/// Rule 121: neither the counter nor the cursor of a registration goes back, and each consumer
/// has its own.
pub async fn a_registration_never_goes_back(source: &dyn SourceUnderTest) {
    captured(source).await;
    assert_eq!(registered(source, "a").await, None);
    source.put("a", "1").await;
    let early = newest(source).await;
    source.put("a", "2").await;
    let late = newest(source).await;
    let first = registration(1, late.clone());
    for given in [&first, &first, &registration(1, early.clone())] {
        source.feed().register(&consumer("a"), given).await.expect("registered");
        assert_eq!(registered(source, "a").await, Some(first.clone()));
    }
    assert_eq!(registered(source, "b").await, None);
    let next = registration(2, late);
    source.feed().register(&consumer("a"), &next).await.expect("registered");
    assert_eq!(registered(source, "a").await, Some(next.clone()));
    let stale = source.feed().register(&consumer("a"), &registration(1, early)).await;
    assert_eq!(stale.expect_err("a later one is held").code, Code::LEDGER_WENT_BACK);
    assert_eq!(registered(source, "a").await, Some(next));
}

/// Rule 121: a source that lacks acknowledgements takes no later one, or else nobody would notice
/// that it was restored.
pub async fn a_registration_is_the_one_after_the_one_that_is_held(source: &dyn SourceUnderTest) {
    captured(source).await;
    source.put("a", "1").await;
    let passed = newest(source).await;
    let skipping = source.feed().register(&consumer("a"), &registration(2, passed.clone())).await;
    let denied = skipping.expect_err("the first is lacking");
    assert_eq!((denied.class, denied.code), (FailureClass::Halted, Code::SOURCE_WENT_BACK));
    assert_eq!(registered(source, "a").await, None, "nothing was written");
    source.feed().register(&consumer("a"), &registration(1, passed)).await.expect("the first");
}

/// Prunes until nothing is left.
async fn pruned(source: &dyn SourceUnderTest) {
    for _ in 0..100 {
        if source.feed().prune().await.expect("pruned") == 0 {
            return;
        }
    }
    panic!("pruning does not end");
}

/// Rules 115 and 120: a tombstone stays until every registered consumer has passed it; what was
/// pruned is told by the floor.
pub async fn tombstones_wait_for_every_consumer(source: &dyn SourceUnderTest) {
    captured(source).await;
    source.put("live", "x").await;
    source.put("a", "x").await;
    source.delete("a").await;
    let first = newest(source).await;
    source.put("b", "x").await;
    source.delete("b").await;
    let feed = source.feed();
    pruned(source).await;
    let kept = everything(source, &Place::START).await;
    assert_eq!(kept.len(), 3, "nobody has consumed anything");
    let all = newest(source).await;
    feed.register(&consumer("a"), &registration(1, all.clone())).await.expect("registered");
    feed.register(&consumer("b"), &registration(1, first.clone())).await.expect("registered");
    pruned(source).await;
    let page = page(source, &Place::START, 10).await;
    assert_eq!(page.view.pruned, first);
    assert!(page.changes.iter().any(|change| change.key == key("b") && change.deleted));
    assert!(page.changes.iter().any(|change| change.key == key("live")));
    assert_eq!(everything(source, &after(all)).await.len(), 0, "pruning draws no number");
}

/// Rules 113 and 115: a row that comes and goes past capture may be delivered between, under the
/// number of its tombstone. So that stays while changes are not recorded, and is recorded anew.
pub async fn tombstones_stay_while_capture_is_broken(source: &dyn SourceUnderTest) {
    captured(source).await;
    source.put("a", "x").await;
    source.delete("a").await;
    let passed = newest(source).await;
    let feed = source.feed();
    feed.register(&consumer("a"), &registration(1, passed.clone())).await.expect("registered");
    source.break_capture().await;
    pruned(source).await;
    assert!(everything(source, &Place::START).await.contains_key(&key("a")), "it was forgotten");
    source.capture().install().await.expect("installed");
    pruned(source).await;
    filled(source).await;
    let again = everything(source, &Place::START).await;
    assert!(again[&key("a")].deleted && !passed.covers(again[&key("a")].stamp));
    let all = newest(source).await;
    feed.register(&consumer("a"), &registration(2, all)).await.expect("registered");
    pruned(source).await;
    assert_eq!(everything(source, &Place::START).await.len(), 0, "it is trusted again");
}

/// Rule 126: a forgotten consumer holds no tombstone back.
pub async fn a_forgotten_consumer_holds_nothing_back(source: &dyn SourceUnderTest) {
    captured(source).await;
    source.put("a", "x").await;
    source.delete("a").await;
    let all = newest(source).await;
    let feed = source.feed();
    feed.register(&consumer("a"), &registration(1, all)).await.expect("registered");
    let nothing = registration(1, Moment::BEGINNING);
    feed.register(&consumer("b"), &nothing).await.expect("registered");
    pruned(source).await;
    assert_eq!(everything(source, &Place::START).await.len(), 1);
    for _ in 0..2 {
        feed.forget(&consumer("b")).await.expect("forgotten");
    }
    pruned(source).await;
    assert_eq!(everything(source, &Place::START).await.len(), 0);
}

/// Rule 121: a feed that was removed and made again is another one.
pub async fn another_feed_is_another_incarnation(source: &dyn SourceUnderTest) {
    captured(source).await;
    source.put("a", "x").await;
    let before = page(source, &Place::START, 1).await.view.incarnation;
    assert_eq!(page(source, &Place::START, 1).await.view.incarnation, before);
    for _ in 0..2 {
        source.capture().remove().await.expect("removed");
    }
    captured(source).await;
    assert_ne!(page(source, &Place::START, 1).await.view.incarnation, before);
}
