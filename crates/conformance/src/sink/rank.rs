//! Per key the greater rank wins, live or deleted, in whatever order deliveries arrive.

use truekeep_core::ports::{Memory, Outcome};

use super::SinkUnderTest;
use super::batches::{assert_contents, delete, listed, rank, send, upsert};

/// Rule 67: an older version does not replace a newer one, and the answer names what is held.
pub async fn older_never_replaces_newer(subject: &mut dyn SinkUnderTest) {
    send(subject, 1, vec![upsert("k", rank(1, 7), "new")]).await;
    let outcomes = send(subject, 2, vec![upsert("k", rank(1, 5), "old")]).await;
    assert_eq!(outcomes, [Outcome::Outdone(rank(1, 7))]);
    assert_contents(subject, &[("k", "new")]).await;
    let outcomes = send(subject, 3, vec![upsert("k", rank(1, 8), "newer")]).await;
    assert_eq!(outcomes, [Outcome::Applied]);
    assert_contents(subject, &[("k", "newer")]).await;
}

/// Rule 63: what is held at this very rank is written again, and the answer says so.
pub async fn equal_rank_is_repeated_and_replaces(subject: &mut dyn SinkUnderTest) {
    send(subject, 1, vec![upsert("k", rank(1, 7), "once"), delete("gone", rank(1, 3))]).await;
    let again = vec![upsert("k", rank(1, 7), "twice"), delete("gone", rank(1, 3))];
    let outcomes = send(subject, 2, again).await;
    assert_eq!(outcomes, [Outcome::Repeated, Outcome::Repeated]);
    assert_contents(subject, &[("k", "twice")]).await;
}

/// X50: a document made under newer rules replaces one of a greater version under older rules.
pub async fn rules_count_before_versions(subject: &mut dyn SinkUnderTest) {
    send(subject, 1, vec![upsert("k", rank(1, 900), "older rules")]).await;
    let outcomes = send(subject, 2, vec![upsert("k", rank(2, 1), "newer rules")]).await;
    assert_eq!(outcomes, [Outcome::Applied]);
    let outcomes = send(subject, 3, vec![upsert("k", rank(1, 901), "older rules")]).await;
    assert_eq!(outcomes, [Outcome::Outdone(rank(2, 1))]);
    assert_contents(subject, &[("k", "newer rules")]).await;
}

/// Rule 117a: a delayed delete of an old owner has no effect on a newer record.
pub async fn late_delete_cannot_win(subject: &mut dyn SinkUnderTest) {
    if !subject.sink().capabilities().versioned_deletes {
        return;
    }
    send(subject, 1, vec![upsert("k", rank(1, 7), "kept")]).await;
    let outcomes = send(subject, 2, vec![delete("k", rank(1, 6))]).await;
    assert_eq!(outcomes, [Outcome::Outdone(rank(1, 7))]);
    assert_contents(subject, &[("k", "kept")]).await;
}

/// Rule 115, X10: a late upsert that is older than a delete does not bring the record back,
/// also after a restart.
pub async fn deletion_is_remembered(subject: &mut dyn SinkUnderTest) {
    if subject.sink().capabilities().remembers_deletes == Memory::None {
        return;
    }
    send(subject, 1, vec![upsert("k", rank(1, 5), "first")]).await;
    assert_eq!(send(subject, 2, vec![delete("k", rank(1, 7))]).await, [Outcome::Applied]);
    assert_contents(subject, &[]).await;
    for number in [3, 4] {
        let outcomes = send(subject, number, vec![upsert("k", rank(1, 6), "late")]).await;
        assert_eq!(outcomes, [Outcome::Outdone(rank(1, 7))]);
        assert_contents(subject, &[]).await;
        subject.reopen().await;
    }
}

/// X10: a delete that arrives before the record it deletes is remembered too.
pub async fn deletion_of_an_unknown_record_is_remembered(subject: &mut dyn SinkUnderTest) {
    if subject.sink().capabilities().remembers_deletes == Memory::None {
        return;
    }
    let both = vec![delete("k", rank(1, 7)), upsert("other", rank(1, 8), "live")];
    assert_eq!(send(subject, 1, both).await, [Outcome::Applied, Outcome::Applied]);
    let outcomes = send(subject, 2, vec![upsert("k", rank(1, 6), "late")]).await;
    assert_eq!(outcomes, [Outcome::Outdone(rank(1, 7))]);
    assert_contents(subject, &[("other", "live")]).await;
}

/// Rule 67: a record that was deleted comes back at a greater rank, and only what is live is
/// held against later deliveries.
pub async fn newer_upsert_revives(subject: &mut dyn SinkUnderTest) {
    send(subject, 1, vec![delete("k", rank(1, 7))]).await;
    let outcomes = send(subject, 2, vec![upsert("k", rank(1, 8), "back")]).await;
    assert_eq!(outcomes, [Outcome::Applied]);
    assert_contents(subject, &[("k", "back")]).await;
    let outcomes = send(subject, 3, vec![delete("k", rank(1, 7))]).await;
    assert_eq!(outcomes, [Outcome::Outdone(rank(1, 8))]);
    assert_contents(subject, &[("k", "back")]).await;
}

/// Rule 6: a batch whose outcome was not known is sent again, and nothing is doubled.
pub async fn repeated_batch_changes_nothing(subject: &mut dyn SinkUnderTest) {
    send(subject, 1, vec![upsert("b", rank(1, 1), "b"), upsert("c", rank(1, 2), "c")]).await;
    let batch = || vec![upsert("a", rank(1, 4), "a"), delete("b", rank(1, 3))];
    send(subject, 2, batch()).await;
    let before = (listed(&*subject.sink(), 10).await, subject.sink().mark().await.expect("a mark"));
    let outcomes = send(subject, 2, batch()).await;
    assert_eq!(outcomes, [Outcome::Repeated, Outcome::Repeated]);
    let after = (listed(&*subject.sink(), 10).await, subject.sink().mark().await.expect("a mark"));
    assert_eq!(before, after);
    assert_contents(subject, &[("a", "a"), ("c", "c")]).await;
}
