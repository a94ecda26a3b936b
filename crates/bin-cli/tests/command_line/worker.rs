//! A worker at work is seen by others, and gives back what it holds when it is asked to end.

use std::fs::File;
use std::process::{Child, Command, Stdio};

use crate::world::World;

/// Where a worker's lines are kept.
const TOLD: &str = "worker.log";

/// A worker that is ended with the test.
pub struct Worker(Child);

impl Worker {
    pub fn start(world: &World) -> Self {
        let told = File::create(world.path(TOLD)).expect("made");
        let mut command = world.command(&["run"]);
        Self(command.stdout(Stdio::null()).stderr(told).spawn().expect("started"))
    }

    /// What it told people so far.
    pub fn told(&self, world: &World) -> String {
        world.steady(&std::fs::read_to_string(world.path(TOLD)).expect("read"))
    }

    /// Asks it to end, and waits until it has.
    pub fn ask_to_end(&mut self) -> Option<i32> {
        let asked = Command::new("kill").arg("-TERM").arg(self.0.id().to_string()).status();
        assert!(asked.expect("asked").success());
        self.0.wait().expect("it ends").code()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_second_worker_is_told_who_holds_what_until_when() {
    let world = World::followed();
    let mut worker = Worker::start(&world);
    world.sql("app.db", "UPDATE cities SET people = 0");
    assert_eq!(world.run(&["wait", "--timeout", "60 s"]).code, 0);
    insta::assert_snapshot!(world.run(&["run", "--once"]).text());
    let status = world.run(&["status"]);
    assert!(status.stdout.contains("[HOLDER] until [TIME]"), "{}", status.text());
    assert_eq!(worker.ask_to_end(), Some(0));
    let after = world.run(&["status"]);
    assert!(!after.stdout.contains("[HOLDER]"), "{}", after.text());
    assert_eq!(world.run(&["run", "--once"]).code, 0, "nobody has to wait for the lease's end");
}

#[test]
fn a_pipeline_that_cannot_be_opened_stops_no_other() {
    let world = World::cities();
    let more = "\n[source.gone]\nurl = \"sqlite:gone.db\"\n\n[pipeline.gone]\nsource = \"gone\"\n\
        table = \"t\"\nsink = \"gone\"\n\n[sink.gone]\nkind = \"sqlite\"\nurl = \"sqlite:mirror.db\"\n\
        table = \"gone\"\n";
    let text = std::fs::read_to_string(world.path("truekeep.toml")).expect("read");
    world.write("truekeep.toml", &(text + more));
    assert_eq!(world.run(&["capture", "install", "-p", "cities"]).code, 0);
    insta::assert_snapshot!(world.run(&["run", "--once"]).text());
}

#[test]
fn a_ledger_in_memory_works_for_one_run() {
    let world = World::cities();
    let text = std::fs::read_to_string(world.path("truekeep.toml")).expect("read");
    world.write("truekeep.toml", &format!("[ledger]\nurl = \"memory:\"\n\n{text}"));
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    insta::assert_snapshot!(world.run(&["run", "--once"]).text());
}
