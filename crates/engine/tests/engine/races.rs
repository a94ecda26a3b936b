//! Races with operators and with new rules, while a turn is under way.

use std::time::Duration;

use truekeep_core::certificate::State;
use truekeep_core::code::Code;
use truekeep_core::ports::{Announced, Announcement, Items, Leases, Ledger, Retried};
use truekeep_core::{Fence, Fingerprint, Incarnation, RulesNumber};
use truekeep_engine::{Ending, Happening};

use crate::world::tap::{Fault, Grudge};
use crate::world::{Process, Running, World, key, pass, pass_ms, row};

impl World {
    /// An operator announces rules.
    async fn announce(&self, fingerprint: &str) -> RulesNumber {
        let name = Self::scope().pipeline().clone();
        let known = self.ledger.pipeline(&name).await.expect("answered").expect("known");
        let new = Announcement {
            pipeline: name,
            incarnation: Incarnation::parse("unused").expect("valid"),
            fingerprint: Fingerprint::parse(fingerprint).expect("valid"),
            text: "{}".into(),
            replaces: Some(known.rules.number),
            above: truekeep_core::RulesNumber::default(),
            anew: false,
        };
        match self.ledger.announce(&new).await.expect("answered") {
            Announced::InForce(record) => record.rules.number,
            Announced::Outpaced(found) => panic!("outpaced by {found:?}"),
        }
    }

    async fn fence(&self) -> Fence {
        let (lease, _) = self.ledger.holder(&Self::scope()).await.expect("answered");
        lease.expect("held").fence
    }
}

/// A worker in the middle of a slow batch: ten rows are under way, one is parked.
async fn in_the_middle(world: &World) -> (Process, Running) {
    let process = world.process();
    process.tap.bear("parked", Grudge::Refuses);
    world.source.put(&key("parked"), "first");
    let running = process.start();
    pass(2).await;
    assert_eq!(world.certificate().await.state, State::Partial);
    process.tap.heal();
    process.tap.forget_log();
    process.tap.fault("sink.apply", 1, Fault::Slow(Duration::from_millis(500)));
    world.rows(0..10, "first");
    pass_ms(100).await;
    assert_eq!(process.tap.count("sink.apply"), 1);
    (process, running)
}

/// Lost(RunVersion): the same lease goes on with the run as it is.
#[tokio::test(start_paused = true)]
async fn an_operators_wish_in_mid_turn_is_seen_under_the_same_lease() {
    let world = World::new();
    let (process, running) = in_the_middle(&world).await;
    let fence = world.fence().await;
    let wish = world.ledger.retry(&World::scope(), &key("parked")).await;
    assert_eq!(wish.expect("answered"), Retried::Pending);
    pass(3).await;
    assert!(world.equal());
    assert_eq!(world.certificate().await.state, State::Complete);
    assert_eq!(world.fence().await, fence);
    assert!(!process.happened().contains(&Happening::Lost));
    running.stop().await;
}

/// A worker that ends when nothing is due sees a wish that came in its last turn.
#[tokio::test(start_paused = true)]
async fn a_worker_does_not_end_on_a_wish_that_it_lost_a_race_to() {
    let world = World::new();
    let process = world.process();
    process.tap.bear("parked", Grudge::Refuses);
    world.source.put(&key("parked"), "first");
    process.drain().await;
    process.tap.heal();
    world.rows(0..10, "first");
    process.tap.fault("sink.apply", 1, Fault::Slow(Duration::from_millis(500)));
    let wish = async {
        pass_ms(100).await;
        world.ledger.retry(&World::scope(), &key("parked")).await.expect("answered")
    };
    let (ending, wish) = tokio::join!(process.drain(), wish);
    assert_eq!((ending, wish), (Ending::Drained, Retried::Pending));
    assert!(world.equal());
    assert_eq!(world.certificate().await.state, State::Complete);
}

/// Rule 101.
#[tokio::test(start_paused = true)]
async fn an_idle_worker_sees_an_operators_wish_within_the_idle_look() {
    let world = World::new();
    let (_, running) = in_the_middle(&world).await;
    pass(2).await;
    assert!(!world.equal());
    world.ledger.retry(&World::scope(), &key("parked")).await.expect("answered");
    let certificate = world.certificate().await;
    assert_eq!((certificate.parked, certificate.unsettled), (0, 1), "before it is delivered");
    pass_ms(1_100).await;
    assert!(world.equal());
    assert_eq!(world.certificate().await.state, State::Complete);
    running.stop().await;
}

/// Lost(Rules), the same fingerprint: everything is delivered again under the new number.
#[tokio::test(start_paused = true)]
async fn the_same_rules_under_a_new_number_are_adopted_and_everything_is_delivered_again() {
    let world = World::new();
    let (process, running) = in_the_middle(&world).await;
    let fence = world.fence().await;
    let rules = world.announce("rules-a").await;
    pass(5).await;
    assert_eq!(world.fence().await, fence, "under the same lease");
    let held = world.sink.contents();
    assert_eq!(held.len(), 11);
    for (key, held) in held {
        assert_eq!(held.rank.expect("ours").rules, rules, "{key}");
    }
    let certificate = world.certificate().await;
    assert_eq!((certificate.state, certificate.rules), (State::Complete, rules));
    assert!(!process.happened().contains(&Happening::Lost));
    running.stop().await;
}

/// Rule 57: Lost(Rules), another fingerprint.
#[tokio::test(start_paused = true)]
async fn other_rules_in_mid_turn_end_the_work_and_give_the_lease_back() {
    let world = World::new();
    let (process, running) = in_the_middle(&world).await;
    let (before, _) = world.run().await;
    world.announce("rules-b").await;
    pass(5).await;
    world.rows(10..20, "first");
    pass(60).await;
    assert_eq!(process.tap.count("sink.apply"), 1, "the batch under way, and no other");
    let (after, _) = world.run().await;
    let same = (after.version, after.phase) == (before.version, before.phase);
    assert!(same, "nothing of it was committed");
    assert!(!world.is_held().await);
    let last = process.happened();
    assert_eq!(last.last(), Some(&Happening::Inactive(Code::RULES_CHANGED)));
    assert_eq!(world.certificate().await.state, State::Stale);
    let renewed = World { fingerprint: "rules-b".into(), ..world.clone() };
    assert_eq!(renewed.drain().await, Ending::Drained);
    assert!(world.equal());
    assert_eq!(world.certificate().await.state, State::Complete);
    running.stop().await;
}

/// An idle worker learns of other rules as well.
#[tokio::test(start_paused = true)]
async fn other_rules_take_an_idle_worker_its_scope_within_the_idle_look() {
    let world = World::new();
    let running = world.process().start();
    pass(2).await;
    world.announce("rules-b").await;
    pass_ms(1_100).await;
    assert!(!world.is_held().await);
    running.stop().await;
}

/// F2: whatever race the telling of a take-over loses, source and sink are looked at before
/// anything is sent.
#[tokio::test(start_paused = true)]
async fn a_race_lost_while_a_take_over_is_told_does_not_skip_the_look_at_the_sink() {
    let world = World::new();
    let (_, running) = in_the_middle(&world).await;
    pass(1).await;
    running.stop().await;
    let emptied = World { sink: std::sync::Arc::default(), ..world.clone() };
    let process = emptied.process();
    process.tap.fault("ledger.commit", 1, Fault::Slow(Duration::from_millis(100)));
    world.source.put(&row(3), "second");
    let wish = async {
        pass_ms(50).await;
        world.ledger.retry(&World::scope(), &key("parked")).await.expect("answered")
    };
    let (ending, wish) = tokio::join!(process.drain(), wish);
    assert_eq!(wish, Retried::Pending);
    assert_eq!(ending, Ending::Drained);
    assert!(emptied.equal(), "what the sink had lost was noticed and delivered again");
}
