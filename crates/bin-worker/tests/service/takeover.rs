//! Two workers on one configuration.

use crate::law::Law;
use crate::process::Process;
use crate::world::World;
use crate::writer::Writer;

#[test]
fn of_two_workers_one_works_and_the_other_takes_over_when_it_dies() {
    let world = World::new("1 s");
    world.capture();
    let writer = Writer::start(world.source(), 3);
    let mut law = Law::default();
    let holder = || world.known("things").lease.map(|lease| lease.holder.to_string());
    let mut first = Process::start(&world.config_path());
    first.hear("lease taken");
    let mut second = Process::start(&world.config_path());
    let waits = second.hear("another worker has the lease");
    assert_eq!(waits["holder"].as_str(), holder().as_deref());
    assert!(holder().expect("held").starts_with(&format!("{}-", first.pid())));

    first.kill();
    let taken = second.hear("lease taken");
    assert_eq!(taken["after_crash"], true);
    assert!(holder().expect("held").starts_with(&format!("{}-", second.pid())));
    writer.stop();
    world.wait_until_complete("things");
    second.kill();
    law.check(&world);
    assert_eq!(law.moments.len(), 1);
    world.assert_equal("things");
}
