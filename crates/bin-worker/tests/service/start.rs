//! What keeps the service from starting, and what it never tells.

use crate::http::get;
use crate::process::{Process, command};
use crate::world::{LISTEN, World, pipeline, until};

/// Runs it to its end: the exit code, and what it printed.
fn ends(world: &World, arguments: &[&str]) -> (Option<i32>, String) {
    let output = command(&world.config_path()).args(arguments).output().expect("it is built");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn a_configuration_that_cannot_be_used_is_shown_with_its_line() {
    let world = World::new("30 s");
    world.configure(&pipeline("things").replace("key =", "kee ="));
    let (code, printed) = ends(&world, &[]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains("kee = \"id\"") && printed.contains("help:"), "{printed}");
}

#[test]
fn an_option_or_a_level_that_is_none_is_a_usage_error() {
    let world = World::new("30 s");
    for arguments in [["--log", "xml"], ["--log-level", "a=b=c"]] {
        let (code, printed) = ends(&world, &arguments);
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.contains("error: "), "{printed}");
    }
}

#[test]
fn an_address_that_is_taken_is_named() {
    let world = World::new("30 s");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("bound").to_string();
    world.configure(&format!("{}[worker]\nlisten = \"{address}\"\n", pipeline("things")));
    let (code, printed) = ends(&world, &[]);
    assert_eq!(code, Some(2), "{printed}");
    assert!(printed.contains(&address) && printed.contains("hint: "), "{printed}");
}

#[test]
fn a_ledger_that_cannot_be_opened_exits_as_halted() {
    let world = World::new("30 s");
    std::fs::create_dir(world.path("truekeep.db")).expect("made");
    let (code, printed) = ends(&world, &[]);
    assert_eq!(code, Some(7), "{printed}");
    assert!(printed.contains("LEDGER_UNAVAILABLE"), "{printed}");
}

/// Also where it stands inside quotes, as in JSON.
#[test]
fn a_value_from_the_environment_stands_in_no_log_and_no_answer() {
    let world = World::new("30 s");
    let secret = "s3cr3t\"\\.db";
    let text = pipeline("things").replace("source.db", "${SECRET}");
    world.configure(&format!("{text}[worker]\n{LISTEN}"));
    let mut worker = Process::start_with(&world.config_path(), &[("SECRET", secret)]);
    let address = worker.address();
    let mut answer = get(address, "/readyz");
    until(|| {
        answer = get(address, "/readyz");
        answer.body.contains("SOURCE_UNAVAILABLE")
    });
    let status = get(address, "/status.json");
    assert!(answer.body.contains("${SECRET}") && status.body.contains("${SECRET}"), "{answer:?}");
    worker.hear("tried again");
    worker.signal(rustix::process::Signal::TERM);
    let (_, log) = worker.end();
    assert!(log.contains("${SECRET}"), "{log}");
    for told in [&log, &answer.body, &status.body] {
        assert!(!told.contains("s3cr3t"), "{told}");
    }
}
