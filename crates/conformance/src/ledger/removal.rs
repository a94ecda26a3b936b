//! Rules of removing a pipeline.

use super::*;
use truekeep_core::certificate::State;
use truekeep_core::failure::PortError;
use truekeep_core::ports::{
    Discarded, ItemFilter, PipelineState, Removal, Removing, Retried, Steer, Steering,
};
use truekeep_core::{Fence, Revision};

const REQUEST_MAX: Duration = Duration::from_secs(10);

fn removal() -> Removal {
    Removal {
        pipeline: pipeline(),
        incarnation: Incarnation::parse("life-1").expect("a token"),
        purge: false,
        newest: Version::new(0),
        request_max: REQUEST_MAX,
        by: "by somebody".to_owned(),
    }
}

async fn remove(ledger: &dyn LedgerUnderTest, removal: &Removal) -> Option<Removing> {
    let record = ledger.operations().remove(removal).await.expect("an answer")?;
    match record.state {
        PipelineState::Removing(removing) => Some(removing),
        other => panic!("it is {other:?}"),
    }
}

async fn drop_part(ledger: &dyn LedgerUnderTest, limit: u32) -> bool {
    let Removal { pipeline, incarnation, .. } = removal();
    let gone = ledger.operations().drop_part(&pipeline, &incarnation, limit).await;
    gone.expect("an answer")
}

/// Removes the pipeline whole.
async fn removed(ledger: &dyn LedgerUnderTest) {
    remove(ledger, &removal()).await.expect("it is under way");
    assert!(drop_part(ledger, 100).await);
}

fn refused<T: Debug>(answer: Result<T, PortError>) {
    assert_eq!(answer.expect_err("refused").code, Code::PIPELINE_REMOVED);
}

/// Rule 109: no rules, run, lease, checkpoint, claim or wish of it is taken any more, and nothing
/// changes; what was certified is so no longer.
pub async fn everything_is_refused_to_a_pipeline_that_is_being_removed(
    ledger: &dyn LedgerUnderTest,
) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![parked("a", 1), due("b", 1), LedgerWrite::Certify(at(1))]).await;
    owner.land(vec![settle("b", 1), LedgerWrite::Certify(at(2)), due("b", 2)]).await;
    let token = owner.guard.token.clone();
    remove(ledger, &removal()).await.expect("it is under way");
    let found = certificate(ledger).await;
    assert_eq!((found.state, found.code), (State::Stale, Some(Code::PIPELINE_REMOVED)));
    assert_eq!(run(ledger).await.state, RunState::Stopped(Code::PIPELINE_REMOVED));
    let before = seen(ledger).await;
    assert!(matches!(owner.commit(vec![settle("a", 9)]).await, Committed::Lost(_)));
    assert!(owner.try_claim(10).await.is_err());
    let lost = ledger.leases().renew(&holder("owner"), std::slice::from_ref(&token), TTL).await;
    assert_eq!(lost.expect("an answer"), [token]);
    let taken = ledger.leases().acquire(&scope(), &holder("new"), &lease_token("new"), TTL).await;
    assert_eq!(taken.expect("an answer"), Acquired::Closed(Code::PIPELINE_REMOVED));
    refused(ledger.ledger().announce(&announcement(Some(1), "two")).await);
    refused(ledger.ledger().open_run(&new_run("run-2", "second")).await);
    let (items, operations, key) = (ledger.items(), ledger.operations(), Key::new("a"));
    refused(items.retry(&scope(), &key).await);
    refused(items.request(&scope(), &key, Version::new(9), ItemKind::Upsert).await);
    refused(operations.discard(&scope(), &key, Version::new(1), "x").await);
    for to in [Steering::Pause, Steering::Resume] {
        let seen = Revision::new(1);
        let steer = Steer { pipeline: pipeline(), to, seen, by: String::new() };
        refused(operations.steer(&steer).await);
    }
    assert_eq!(seen(ledger).await, before);
    assert_eq!(told(ledger).await, [(Code::PIPELINE_REMOVED, "by somebody".to_owned())]);
}

/// X58: what a holder has under way may arrive until its lease would have ended and a request more;
/// where nobody ever had the lease nothing can arrive.
pub async fn a_removal_is_quiet_once_nothing_can_arrive(ledger: &dyn LedgerUnderTest) {
    let anew = Announcement { anew: true, ..announcement(None, "one") };
    ledger.ledger().announce(&anew).await.expect("announced");
    let never = remove(ledger, &removal()).await.expect("it is under way");
    assert_eq!(never.quiet_at, now(ledger).await);
    assert!(drop_part(ledger, 100).await);
    ledger.ledger().announce(&anew).await.expect("announced");
    acquired(ledger, "owner").await;
    ledger.advance(MOMENT);
    let held = remove(ledger, &removal()).await.expect("it is under way");
    let ends = now(ledger).await.plus(TTL - MOMENT);
    assert_eq!(held.quiet_at, ends.plus(REQUEST_MAX));
    assert!(drop_part(ledger, 100).await);
    ledger.ledger().announce(&anew).await.expect("announced");
    let (lease, _) = acquired(ledger, "owner").await;
    ledger.leases().release(&scope(), &lease.token).await.expect("an answer");
    let given_back = remove(ledger, &removal()).await.expect("it is under way");
    assert_eq!(given_back.quiet_at, now(ledger).await.plus(REQUEST_MAX));
}

/// Rule 126: a repeat finds the removal under way and begins nothing anew; what it knows more is
/// kept.
pub async fn a_repeated_removal_only_learns(ledger: &dyn LedgerUnderTest) {
    Owner::begin(ledger).await;
    let first = remove(ledger, &removal()).await.expect("it is under way");
    let (history, fence) = (told(ledger).await, record(ledger).await.revision);
    ledger.advance(TTL);
    assert_eq!(remove(ledger, &removal()).await, Some(first));
    let more = Removal { purge: true, newest: Version::new(7), ..removal() };
    let learned = Removing { purge: true, newest: Version::new(7), ..first };
    assert_eq!(remove(ledger, &more).await, Some(learned));
    let less = Removal { newest: Version::new(3), ..removal() };
    assert_eq!(remove(ledger, &less).await, Some(learned));
    assert_eq!((told(ledger).await, record(ledger).await.revision), (history, fence));
    let other = Incarnation::parse("life-2").expect("a token");
    assert_eq!(remove(ledger, &Removal { incarnation: other, ..removal() }).await, None);
}

/// Rule 126: items go in bounded parts, the rest with the last of them; the name is free only then.
pub async fn a_removed_pipeline_goes_in_parts_and_frees_its_name(ledger: &dyn LedgerUnderTest) {
    let mut owner = Owner::begin(ledger).await;
    owner.land(vec![parked("a", 1), due("b", 1), parked("c", 1)]).await;
    let Removal { pipeline: name, incarnation, .. } = removal();
    let early = ledger.operations().drop_part(&name, &incarnation, 1).await;
    assert_eq!(early.expect_err("nobody removes it").code, Code::UNEXPECTED);
    assert!(item(ledger, "a").await.is_some());
    remove(ledger, &removal()).await.expect("it is under way");
    for left in [2, 1, 0] {
        assert!(!drop_part(ledger, 1).await);
        let items = ledger.items().list(&scope(), ItemFilter::All, None, 10).await;
        assert_eq!(items.expect("an answer").len(), left);
        assert!(matches!(record(ledger).await.state, PipelineState::Removing(_)));
        refused(ledger.ledger().announce(&announcement(Some(1), "two")).await);
    }
    assert!(drop_part(ledger, 1).await);
    assert_eq!(ledger.ledger().pipeline(&name).await.expect("an answer"), None);
    assert_eq!(ledger.archive().pipelines().await.expect("an answer"), []);
    assert_eq!(ledger.archive().certificate(&scope()).await.expect("an answer"), None);
    let run = ledger.ledger().load(&scope(), ProcedureKind::Follow).await;
    assert_eq!(run.expect("an answer"), None);
    assert_eq!(told(ledger).await.len(), 2, "who removed it stays told");
    assert!(drop_part(ledger, 1).await, "a repeat");
    assert_eq!(remove(ledger, &removal()).await, None, "a repeat");
    assert_eq!(told(ledger).await.len(), 2);
}

/// X58 and L2: rules and fences of a name are given once, over all its lives, and where its feed
/// had come to is known.
pub async fn a_new_life_begins_above_the_old_one(ledger: &dyn LedgerUnderTest) {
    assert_eq!(ledger.operations().floor(&pipeline()).await.expect("an answer"), Version::new(0));
    let owner = Owner::begin(ledger).await;
    ledger.ledger().announce(&announcement(Some(1), "two")).await.expect("announced");
    remove(ledger, &Removal { newest: Version::new(50), ..removal() }).await.expect("under way");
    assert!(drop_part(ledger, 100).await);
    let floor = ledger.operations().floor(&pipeline()).await;
    assert_eq!(floor.expect("an answer"), Version::new(50));
    let again = Announcement {
        incarnation: Incarnation::parse("life-2").expect("a token"),
        anew: true,
        ..announcement(None, "one")
    };
    ledger.ledger().announce(&again).await.expect("announced");
    let found = record(ledger).await;
    assert_eq!((found.rules.number, found.revision), (RulesNumber::new(3), Revision::new(0)));
    assert_eq!((found.incarnation, found.state), (again.incarnation, PipelineState::Working));
    let (lease, after_crash) = acquired(ledger, "next").await;
    assert!(lease.fence > owner.guard.fence.next(), "one was drawn by the removal");
    assert!(!after_crash, "nobody died in this life");
}

/// Rules 64 and 110: tokens, items and removals of an old life have no effect on a new one, and its
/// first certificate vouches for nothing.
pub async fn an_old_life_has_no_effect_on_a_new_one(ledger: &dyn LedgerUnderTest) {
    let mut old = Owner::begin(ledger).await;
    old.land(vec![parked("a", 5), LedgerWrite::Certify(at(5))]).await;
    let repeated = old.prepared(vec![parked("b", 5)]);
    let token = old.guard.token.clone();
    removed(ledger).await;
    assert!(old.ledger.ledger().commit(&repeated).await.is_err(), "the pipeline is not known");
    let again = Announcement {
        incarnation: Incarnation::parse("life-2").expect("a token"),
        anew: true,
        ..announcement(None, "one")
    };
    ledger.ledger().announce(&again).await.expect("announced");
    ledger.ledger().open_run(&new_run("run-2", "first")).await.expect("opened");
    let mut new = Owner::take_over(ledger, "new").await;
    new.land(vec![due("k", 1)]).await;
    assert_eq!(certificate(ledger).await.state, State::Never);
    let before = seen(ledger).await;
    assert!(matches!(old.send(&repeated).await, Committed::Lost(_)));
    assert!(old.try_claim(10).await.is_err());
    assert!(!ledger.leases().release(&scope(), &token).await.expect("an answer"));
    let lost = ledger.leases().renew(&holder("owner"), std::slice::from_ref(&token), TTL).await;
    assert_eq!(lost.expect("an answer"), [token]);
    let retried = ledger.items().retry(&scope(), &Key::new("a")).await;
    assert_eq!(retried.expect("an answer"), Retried::Unknown);
    let (key, version) = (Key::new("a"), Version::new(5));
    let discarded = ledger.operations().discard(&scope(), &key, version, "x").await;
    assert_eq!(discarded.expect("an answer"), Discarded::Unknown);
    assert_eq!(remove(ledger, &removal()).await, None);
    assert!(drop_part(ledger, 100).await, "the life that was meant is gone");
    assert_eq!(seen(ledger).await, before);
    assert_eq!(new.claim(10).await, ["k"]);
}

/// Rule 110: a start, as many as there are, makes nothing anew that an operator has removed.
pub async fn only_an_operator_gives_a_removed_name_a_new_life(ledger: &dyn LedgerUnderTest) {
    Owner::begin(ledger).await;
    removed(ledger).await;
    for _ in 0..2 {
        refused(ledger.ledger().announce(&announcement(None, "one")).await);
        assert_eq!(ledger.ledger().pipeline(&pipeline()).await.expect("an answer"), None);
    }
    let anew = Announcement { anew: true, ..announcement(None, "one") };
    let announced = ledger.ledger().announce(&anew).await;
    assert!(matches!(announced, Ok(Announced::InForce(_))));
}

/// X58: the rules of a new pipeline are above those that its target was written under.
pub async fn rules_begin_above_what_the_target_held(ledger: &dyn LedgerUnderTest) {
    let above = RulesNumber::new(7);
    let first = Announcement { above, ..announcement(None, "one") };
    ledger.ledger().announce(&first).await.expect("announced");
    assert_eq!(record(ledger).await.rules.number, RulesNumber::new(8));
    let lower = Announcement { above: RulesNumber::new(3), ..announcement(Some(8), "two") };
    ledger.ledger().announce(&lower).await.expect("announced");
    assert_eq!(record(ledger).await.rules.number, RulesNumber::new(9), "they only grow");
    let (lease, _) = acquired(ledger, "owner").await;
    assert_eq!(lease.fence, Fence::new(1));
}
