//! What the worker says of itself over HTTP.

use std::net::SocketAddr;

use serde_json::Value;

use crate::http::get;
use crate::process::Process;
use crate::world::{LISTEN, World, pipeline, until};

fn json(address: SocketAddr, path: &str) -> (u16, Value) {
    let answer = get(address, path);
    assert!(answer.head.contains("content-type: application/json"), "{answer:?}");
    (answer.status, serde_json::from_str(&answer.body).expect("JSON"))
}

/// Waits until the only complaint is this one, and returns the answer.
fn unready(address: SocketAddr, pipeline: &str, code: &str) -> Value {
    let mut found = Value::Null;
    until(|| {
        let (status, answer) = json(address, "/readyz");
        let one = &answer["unready"][0];
        let so = status == 503 && one["pipeline"] == pipeline && one["code"] == code;
        found = answer;
        so
    });
    assert_eq!(found["unready"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(found["ready"], false);
    found
}

#[test]
fn a_worker_that_works_is_ready_and_says_how_far_it_is() {
    let world = World::new("30 s");
    world.capture();
    world.source().execute_batch("INSERT INTO things (id) VALUES (1), (2), (3)").expect("written");
    let mut worker = Process::start(&world.config_path());
    let address = worker.address();
    world.wait_until_complete("things");
    assert_eq!(get(address, "/healthz").status, 200);
    until(|| json(address, "/readyz").0 == 200);
    let (_, status) = json(address, "/status.json");
    let one = &status["pipelines"][0];
    assert_eq!((&one["pipeline"], &one["ours"]), (&"things".into(), &true.into()), "{status}");
    assert_eq!((&one["ledger"]["state"], &one["complaint"]), (&"complete".into(), &Value::Null));
    let metrics = get(address, "/metrics");
    assert!(metrics.head.contains("text/plain; version=0.0.4"), "{metrics:?}");
    let moment = world.newest("things");
    for line in [
        "truekeep_certificate_state{pipeline=\"things\",state=\"complete\"} 1".to_owned(),
        "truekeep_certificate_state{pipeline=\"things\",state=\"stale\"} 0".to_owned(),
        format!("truekeep_certificate_moment{{pipeline=\"things\"}} {moment}"),
        "truekeep_delivered_total{pipeline=\"things\"} 3".to_owned(),
        "truekeep_lease_held{pipeline=\"things\"} 1".to_owned(),
    ] {
        assert!(metrics.body.lines().any(|found| found == line), "{line}\n{}", metrics.body);
    }
    let page = get(address, "/");
    assert!(page.status == 200 && page.head.contains("text/html"), "{page:?}");
    assert_eq!(get(address, "/nothing").status, 404);
}

#[test]
fn a_pipeline_without_capture_is_named_and_stops_no_other() {
    let world = World::new("30 s");
    world.capture();
    let source = world.source();
    source.execute_batch("CREATE TABLE loose (id INTEGER PRIMARY KEY)").expect("made");
    source.execute_batch("INSERT INTO things (id) VALUES (1)").expect("written");
    let both = [pipeline("loose"), pipeline("things")].concat();
    world.configure(&format!("{both}[worker]\n{LISTEN}"));
    let mut worker = Process::start(&world.config_path());
    let address = worker.address();
    world.wait_until_complete("things");
    let answer = unready(address, "loose", "CAPTURE_MISSING");
    let remedy = answer["unready"][0]["remedy"].as_str().expect("a remedy");
    assert!(remedy.contains("truekeep capture install"), "{remedy}");
    assert_eq!(get(address, "/healthz").status, 200, "the process is well");
}

#[test]
fn a_table_that_is_no_mirror_is_named() {
    let world = World::new("30 s");
    world.capture();
    world.mirror().execute_batch("CREATE TABLE things (mine TEXT)").expect("made");
    let mut worker = Process::start(&world.config_path());
    unready(worker.address(), "things", "MIRROR_MISMATCH");
}

#[test]
fn rules_that_are_not_in_force_are_named_while_another_worker_works() {
    let world = World::new("30 s");
    world.capture();
    let mut first = Process::start(&world.config_path());
    first.hear("lease taken");
    let other = world.path("other.toml");
    let text = pipeline("things") + "live_when = \"size > 1\"\n[worker]\n" + LISTEN;
    std::fs::write(&other, text).expect("written");
    let mut second = Process::start(&other);
    let answer = unready(second.address(), "things", "RULES_CHANGED");
    assert_ne!(answer["unready"][0]["text"], "", "a code alone says too little");
    assert!(world.known("things").lease.is_some(), "the first still works");
}

/// The log tells a trouble when it begins and when it is over, however often it was tried.
#[test]
fn a_trouble_that_repeats_is_logged_once_and_its_end_as_well() {
    let world = World::new("30 s");
    world.capture();
    world.source().execute_batch("INSERT INTO things (id) VALUES (1)").expect("written");
    let mut worker = Process::start(&world.config_path());
    let address = worker.address();
    world.wait_until_complete("things");
    let rival = world.mirror();
    rival.execute_batch("BEGIN EXCLUSIVE").expect("locked");
    world.source().execute_batch("INSERT INTO things (id) VALUES (2)").expect("written");
    let tried = |times: u32| {
        let line = format!(
            "truekeep_trouble_total{{pipeline=\"things\",code=\"SINK_UNAVAILABLE\"}} {times}"
        );
        until(|| get(address, "/metrics").body.lines().any(|found| found == line));
    };
    tried(2);
    rival.execute_batch("ROLLBACK").expect("unlocked");
    assert_eq!(worker.hear("works again")["code"], "SINK_UNAVAILABLE");
    worker.signal(rustix::process::Signal::TERM);
    let (_, log) = worker.end();
    let told = log.lines().filter(|line| line.contains("SINK_UNAVAILABLE"));
    assert_eq!(told.count(), 2, "{log}");
}

/// What is vouched for is told when it ends and when it is back.
#[test]
fn a_certificate_that_ceases_to_be_complete_is_logged() {
    let world = World::new("30 s");
    world.capture();
    world.source().execute_batch("INSERT INTO things (id) VALUES (1)").expect("written");
    let mut worker = Process::start(&world.config_path());
    worker.hear("complete");
    world.source().execute_batch("DROP TRIGGER truekeep_insert_things").expect("dropped");
    world.source().execute_batch("UPDATE things SET size = 1").expect("written");
    let told = worker.hear("no longer complete");
    assert_eq!((&told["state"], &told["code"]), (&"stale".into(), &"CAPTURE_CHANGED".into()));
    assert!(told["hint"].as_str().is_some_and(|hint| hint.contains("truekeep")), "{told}");
    world.capture();
    worker.hear("complete");
}
