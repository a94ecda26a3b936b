//! Follow end to end, over the reference ledger, source and sink, in virtual time.

mod world;

use truekeep_core::certificate::State;
use truekeep_engine::Ending;
use world::{World, key};

#[tokio::test(start_paused = true)]
async fn a_drained_scope_is_equal_and_complete() {
    let world = World::new();
    for n in 0..2_500 {
        world.source.put(&key(&format!("{n:05}")), "first");
    }
    world.source.delete(&key("00007"));
    let report = world.drain().await;
    assert_eq!(report, vec![(World::scope(), Ending::Drained)]);
    assert!(world.equal());
    let certificate = world.certificate().await;
    assert_eq!(certificate.state, State::Complete);
    world.source.put(&key("00001"), "second");
    assert!(!world.equal());
    world.drain().await;
    assert!(world.equal());
}
