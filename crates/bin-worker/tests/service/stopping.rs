//! Signals: the first asks, the second ends the process.

use rustix::process::Signal;

use crate::law::Law;
use crate::process::Process;
use crate::world::World;
use crate::writer::Writer;

#[test]
fn a_signal_hands_leases_back() {
    for signal in [Signal::TERM, Signal::INT] {
        // So long that nobody would see the end of a lease that was kept.
        let world = World::new("1 h");
        world.capture();
        let writer = Writer::start(world.source(), 5);
        let mut worker = Process::start(&world.config_path());
        worker.hear("lease taken");
        worker.signal(signal);
        let (status, log) = worker.end();
        writer.stop();
        Law::default().check(&world);
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(log.contains("\"message\":\"lease given back\""), "{log}");
        assert_eq!(world.known("things").lease, None);
        let mut next = Process::start(&world.config_path());
        assert_eq!(next.hear("lease taken")["after_crash"], false);
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let world = World::new("1 h");
    world.capture();
    let mut worker = Process::start(&world.config_path());
    worker.hear("lease taken");
    world.wait_until_complete("things");
    // The lease cannot be handed back while the ledger is locked.
    let ledger = crate::world::connect(&world.path("truekeep.db"));
    ledger.execute_batch("BEGIN IMMEDIATE").expect("locked");
    worker.signal(Signal::TERM);
    worker.signal(Signal::INT);
    let (status, log) = worker.end();
    // Two signals at once come in any order.
    assert!(matches!(status.code(), Some(130 | 143)), "{status} {log}");
    assert!(world.known("things").lease.is_some(), "the lease was kept");
}
