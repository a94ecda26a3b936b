//! Rules of registrations and of the tombstones that they hold back.

use super::*;

fn registration(counter: u64, cursor: u64) -> Registration {
    Registration { counter: RegistrationCounter::new(counter), cursor: Version::new(cursor) }
}

async fn registered(source: &dyn SourceUnderTest, name: &str) -> Option<Registration> {
    let page = source.feed().changes(&consumer(name), Version::new(0), 1).await.expect("a page");
    page.view.registration
}

/// Rule 121: neither the counter nor the cursor of a registration goes back, and each consumer
/// has its own.
pub async fn a_registration_never_goes_back(source: &dyn SourceUnderTest) {
    captured(source).await;
    assert_eq!(registered(source, "a").await, None);
    for given in [registration(2, 20), registration(2, 20), registration(1, 10)] {
        source.feed().register(&consumer("a"), given).await.expect("registered");
        assert_eq!(registered(source, "a").await, Some(registration(2, 20)));
    }
    assert_eq!(registered(source, "b").await, None);
    source.feed().register(&consumer("a"), registration(3, 21)).await.expect("registered");
    assert_eq!(registered(source, "a").await, Some(registration(3, 21)));
}

/// Rules 115 and 120: a tombstone stays until every registered consumer has passed it; what was
/// pruned is told by the floor.
pub async fn tombstones_wait_for_every_consumer(source: &dyn SourceUnderTest) {
    captured(source).await;
    source.put("live", "x").await;
    for text in ["a", "b"] {
        source.put(text, "x").await;
        source.delete(text).await;
    }
    let feed = source.feed();
    assert_eq!(feed.prune().await.expect("pruned"), 0, "nobody has consumed anything");
    let first = everything(source, Version::new(0)).await[&key("a")].version;
    let all = newest(source).await;
    feed.register(&consumer("a"), registration(1, all.get())).await.expect("registered");
    feed.register(&consumer("b"), registration(1, first.get())).await.expect("registered");
    assert_eq!(feed.prune().await.expect("pruned"), 1);
    assert_eq!(feed.prune().await.expect("pruned"), 0);
    let page = page(source, Version::new(0), 10).await;
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
    feed.register(&consumer("a"), registration(1, all.get())).await.expect("registered");
    feed.register(&consumer("b"), registration(1, 0)).await.expect("registered");
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
    let before = page(source, Version::new(0), 1).await.view.incarnation;
    assert_eq!(page(source, Version::new(0), 1).await.view.incarnation, before);
    for _ in 0..2 {
        source.capture().remove().await.expect("removed");
    }
    captured(source).await;
    assert_ne!(page(source, Version::new(0), 1).await.view.incarnation, before);
}
