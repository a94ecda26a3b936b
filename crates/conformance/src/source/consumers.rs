//! Rules of registrations and of the tombstones that they hold back.

use super::*;

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
    let last = registration(2, late.clone());
    for given in [&last, &last, &registration(1, early)] {
        source.feed().register(&consumer("a"), given).await.expect("registered");
        assert_eq!(registered(source, "a").await, Some(last.clone()));
    }
    assert_eq!(registered(source, "b").await, None);
    let next = registration(3, late);
    source.feed().register(&consumer("a"), &next).await.expect("registered");
    assert_eq!(registered(source, "a").await, Some(next));
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
    assert_eq!(feed.prune().await.expect("pruned"), 0, "nobody has consumed anything");
    let all = newest(source).await;
    feed.register(&consumer("a"), &registration(1, all.clone())).await.expect("registered");
    feed.register(&consumer("b"), &registration(1, first.clone())).await.expect("registered");
    assert_eq!(feed.prune().await.expect("pruned"), 1);
    assert_eq!(feed.prune().await.expect("pruned"), 0);
    let page = page(source, &Place::START, 10).await;
    assert_eq!(page.view.pruned, first);
    assert!(page.changes.iter().any(|change| change.key == key("b") && change.deleted));
    assert!(page.changes.iter().any(|change| change.key == key("live")));
    assert_eq!(page.view.newest, all, "pruning draws no number");
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
    assert_eq!(feed.prune().await.expect("pruned"), 0);
    for _ in 0..2 {
        feed.forget(&consumer("b")).await.expect("forgotten");
    }
    assert_eq!(feed.prune().await.expect("pruned"), 1);
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
