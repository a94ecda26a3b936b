//! Pipelines are removed for good: shown first, then done, step by step, and never twice.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::worker::Worker;
use crate::world::{CONFIG, World};

/// A second pipeline of the same table, into a table beside the first one's.
const TOWNS: &str = r#"
[pipeline.towns]
source = "app"
table = "cities"
key = "id"
sink = "towns"

[sink.towns]
kind = "sqlite"
url = "sqlite:mirror.db"
table = "towns"
"#;

fn with_towns() -> World {
    let world = World::cities();
    world.write("truekeep.toml", &format!("{CONFIG}{TOWNS}"));
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    world
}

/// Runs a command that removes, ends it by force while it waits for what may be under way, and
/// lets that time pass.
fn cut_short(world: &World, arguments: &[&str]) {
    let mut command = world.command(arguments);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("started");
    let mut first = String::new();
    let stderr = child.stderr.take().expect("piped");
    BufReader::new(stderr).read_line(&mut first).expect("it says that it waits");
    assert!(first.contains("closed, no worker begins anything"), "{first}");
    child.kill().expect("killed");
    child.wait().expect("ended");
    world.sql("truekeep.db", "UPDATE pipeline SET quiet_at = 1 WHERE state = 'removing'");
}

/// Removes a pipeline, without the wait.
pub fn removed(world: &World, options: &[&str]) -> String {
    let command = [&["remove", "cities", "--yes"][..], options].concat();
    cut_short(world, &command);
    world.run(&command).text()
}

fn story(world: &World, commands: &[&str]) -> String {
    let tell = |command: &&str| {
        let said = world.run(&command.split(' ').collect::<Vec<_>>());
        format!("$ truekeep {command}\n{}\n", said.text())
    };
    commands.iter().map(tell).collect()
}

fn number(world: &World, database: &str, sql: &str) -> i64 {
    world.open(database).query_row(sql, [], |row| row.get(0)).expect("read")
}

const MIRRORED: &str = "SELECT count(*) FROM cities";
const CAPTURED: &str = "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'truekeep%'";

#[test]
fn what_would_go_is_shown_and_nothing_goes_before_somebody_says_yes() {
    let world = World::followed();
    let before = world.run(&["history"]).text();
    let told = story(
        &world,
        &[
            "remove cities",
            "remove cities --purge",
            "remove cities --abandon",
            "remove cities --abandon=sink",
            "remove cities --purge --format json",
        ],
    );
    insta::assert_snapshot!(told);
    assert_eq!(world.run(&["history"]).text(), before);
    assert_eq!(world.run(&["coverage"]).code, 0);
    assert_eq!(world.run(&["capture", "verify"]).code, 0);
    assert_eq!(number(&world, "mirror.db", MIRRORED), 5);
}

/// Rule 126: the sink keeps its records, the history what happened, and a repeat changes nothing.
#[test]
fn a_removed_pipeline_is_gone_and_its_records_stay() {
    let world = World::followed();
    let mut told = removed(&world, &["--reason", "moved"]);
    told += &story(
        &world,
        &[
            "remove cities",
            "status",
            "coverage",
            "check",
            "run --once",
            "pause cities",
            "remove cities --yes --format json",
        ],
    );
    world.reconfigure("[pipeline.cities]", "[pipeline.towns]");
    told += &story(&world, &["history -p cities", "remove cities", "status"]);
    insta::assert_snapshot!(told);
    assert_eq!(number(&world, "mirror.db", MIRRORED), 5);
    assert_eq!(number(&world, "app.db", CAPTURED), 0);
}

#[test]
fn a_purge_empties_the_sink() {
    let world = World::followed();
    insta::assert_snapshot!(removed(&world, &["--purge"]));
    assert_eq!(number(&world, "mirror.db", MIRRORED), 0);
}

#[test]
fn a_removal_is_data_in_json() {
    let world = World::followed();
    insta::assert_snapshot!({
        let command = ["remove", "cities", "--yes", "--purge"];
        cut_short(&world, &command);
        world.run(&[&command[..], &["--format", "json"]].concat()).text()
    });
}

#[test]
fn what_cannot_be_meant_is_named() {
    let world = World::cities();
    let mut told = story(&world, &["remove citys", "remove cities", "remove Cities!"]);
    assert!(!world.path("truekeep.db").exists(), "no ledger is made");
    let world = World::followed();
    world.reconfigure("[pipeline.cities]", "[pipeline.towns]");
    told += &story(
        &world,
        &["remove cities --yes", "remove cities --purge --abandon", "remove cities --abandon"],
    );
    insta::assert_snapshot!(told);
    assert_eq!(world.run(&["status"]).text().matches("cities: in the ledger").count(), 1);
}

/// Rule 126: whatever comes in between, it is closed, and goes on where it was.
#[test]
fn a_removal_that_was_cut_short_goes_on_without_being_asked_again() {
    let world = World::followed();
    cut_short(&world, &["remove", "cities", "--yes", "--purge"]);
    let told = story(
        &world,
        &[
            "status",
            "coverage",
            "check",
            "run --once",
            "apply",
            "pause cities",
            "reconcile",
            "explain cities",
            "remove cities",
        ],
    );
    insta::assert_snapshot!(told);
    assert_eq!(number(&world, "mirror.db", MIRRORED), 0, "what was decided first stands");
}

#[test]
fn a_removal_that_keeps_records_is_asked_again_before_it_empties() {
    let world = World::followed();
    cut_short(&world, &["remove", "cities", "--yes"]);
    assert_eq!(world.run(&["remove", "cities", "--purge"]).code, 6);
    assert_eq!(number(&world, "mirror.db", MIRRORED), 5);
    assert_eq!(world.run(&["remove", "cities", "--purge", "--yes"]).code, 0);
    assert_eq!(number(&world, "mirror.db", MIRRORED), 0);
}

#[test]
fn a_source_that_is_gone_for_good_is_left_alone() {
    let world = World::followed();
    std::fs::remove_file(world.path("app.db")).expect("it was there");
    let mut told = story(&world, &["remove cities --yes", "coverage"]);
    told += &removed(&world, &["--abandon"]);
    insta::assert_snapshot!(told);
    assert_eq!(number(&world, "mirror.db", MIRRORED), 5);
}

#[test]
fn a_sink_that_is_gone_for_good_is_left_alone() {
    let world = World::cities();
    std::fs::create_dir(world.path("disk")).expect("made");
    world.reconfigure("sqlite:mirror.db", "sqlite:disk/mirror.db");
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    std::fs::remove_dir_all(world.path("disk")).expect("it was there");
    let mut told = story(&world, &["remove cities --yes --purge"]);
    told += &removed(&world, &["--abandon=sink"]);
    insta::assert_snapshot!(told);
    assert_eq!(number(&world, "app.db", CAPTURED), 0);
}

#[test]
fn a_mirror_that_was_deleted_is_not_made_to_be_left() {
    let world = World::followed();
    std::fs::remove_file(world.path("mirror.db")).expect("it was there");
    insta::assert_snapshot!(removed(&world, &["--purge"]));
    assert!(!world.path("mirror.db").exists(), "it is not made");
}

/// Rule 125: what another deployment writes is neither emptied nor buried.
#[test]
fn a_sink_that_another_pipeline_writes_is_left_alone() {
    let world = World::followed();
    let other = format!("[ledger]\nurl = \"sqlite:other.db\"\n\n{CONFIG}");
    world.write("other.toml", &other);
    let told = story(
        &world,
        &[
            "run --once --config other.toml",
            "status --config other.toml",
            "pause cities --config other.toml",
        ],
    );
    // Nobody has it, and nothing of it is under way.
    world.sql("other.db", "UPDATE pipeline SET fence = 0");
    let told =
        told + &story(&world, &["remove cities --yes --purge --config other.toml", "run --once"]);
    insta::assert_snapshot!(told);
    assert_eq!(number(&world, "mirror.db", MIRRORED), 5);
    assert_eq!(world.run(&["capture", "verify"]).code, 0, "somebody else is registered");
}

/// Rule 115: the other pipeline goes on, and its changes are recorded.
#[test]
fn capture_stays_for_another_pipeline_of_the_table() {
    let world = with_towns();
    let mut told = story(&world, &["remove cities"]);
    told += &removed(&world, &["--purge"]);
    insta::assert_snapshot!(told);
    world.sql("app.db", "INSERT INTO cities VALUES (6, 'Oslo', 700000)");
    assert_eq!(world.run(&["run", "--once", "-p", "towns"]).code, 0);
    assert_eq!(number(&world, "mirror.db", "SELECT count(*) FROM towns"), 6);
}

/// X58: what was left is delivered over, under rules above those it was written under.
#[test]
fn a_pipeline_of_the_same_name_begins_above_what_was_left() {
    let world = World::followed();
    removed(&world, &[]);
    world.sql("app.db", "DELETE FROM cities WHERE id = 4; UPDATE cities SET people = 0");
    let told = story(
        &world,
        &["apply", "capture install", "run --once", "run --once", "coverage", "diff --deep"],
    );
    insta::assert_snapshot!(told);
    assert_eq!(number(&world, "mirror.db", MIRRORED), 4);
}

/// Rule 110: it ends its turn, says why it does no more, and lives on.
#[test]
fn a_worker_beside_it_gives_the_pipeline_up() {
    let world = World::followed();
    let text = format!("[worker]\nlease = \"3 s\"\n\n{CONFIG}");
    world.write("truekeep.toml", &text);
    let mut worker = Worker::start(&world);
    world.sql("app.db", "UPDATE cities SET people = 0");
    assert_eq!(world.run(&["wait", "--timeout", "60 s"]).code, 0);
    let told = world.run(&["remove", "cities", "--yes"]).text();
    insta::assert_snapshot!(told);
    world.sql("app.db", "UPDATE cities SET people = 1");
    assert_eq!(worker.ask_to_end(), Some(0));
    assert_eq!(number(&world, "mirror.db", "SELECT max(people) FROM cities"), 0);
    let told = worker.told(&world);
    // Who hears of it first is not said.
    let mut lines: Vec<_> = told.lines().collect();
    lines.sort_unstable();
    insta::assert_snapshot!("worker_of_a_removed_pipeline", lines.join("\n"));
}
