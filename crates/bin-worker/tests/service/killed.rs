//! The worker is killed again and again while an application writes.

use std::time::Duration;

use crate::law::Law;
use crate::process::Process;
use crate::world::{LISTEN, World, pipeline};
use crate::writer::{Draws, Writer};

const KILLS: u32 = 30;

/// At every kill what the certificate says is so; in the end both sides are equal.
#[test]
fn kill_9_thirty_times() {
    let world = World::new("1 s");
    // Small pages, so that workers die between them too.
    let pipeline = pipeline("things") + "page_rows = 10\n";
    world.configure(&format!("{pipeline}[worker]\nlease = \"1 s\"\n{LISTEN}"));
    world.capture();
    let writer = Writer::start(world.source(), 7);
    let (mut law, mut draws) = (Law::default(), Draws(11));
    for _ in 0..KILLS {
        let mut worker = Process::start(&world.config_path());
        // Most die at work, some while they still wait for the lease of the one before.
        if draws.below(4) > 0 {
            worker.hear("lease taken");
        }
        // How long it lives is the experiment: nothing waits for it.
        std::thread::sleep(Duration::from_millis(draws.below(900)));
        worker.kill();
        law.check(&world);
    }
    let transactions = writer.stop();
    assert!(transactions > u64::from(KILLS), "there was a writer beside: {transactions}");
    let worker = Process::start(&world.config_path());
    world.wait_until_complete("things");
    drop(worker);
    law.check(&world);
    assert!(law.moments.len() > 5, "the law was put to the test: {:?}", law.moments);
    world.assert_equal("things");
}
