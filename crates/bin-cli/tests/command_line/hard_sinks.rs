//! Hard inputs: sinks that are of other fields or of another version, or whose disk is full, are
//! named with what to do, and nothing in them is lost.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::world::{CONFIG, World};

/// The cities in an index beside the mirror.
const INDEX: &str = r#"
[pipeline.places]
source = "app"
table = "cities"
key = "id"
sink = "search"

[sink.search]
kind = "tantivy"
path = "search"

[sink.search.fields]
id = "i64"
name = "text"
"#;

fn indexed() -> World {
    let world = World::cities();
    world.write("truekeep.toml", &format!("{CONFIG}{INDEX}"));
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    world
}

fn story(world: &World, commands: &[&[&str]]) -> String {
    let told = |command: &&[&str]| {
        format!("$ truekeep {}\n{}\n", command.join(" "), world.run(command).text())
    };
    commands.iter().map(told).collect()
}

/// What is asked of an index that does not fit.
const ASKED: [&[&str]; 4] = [
    &["check", "-p", "places"],
    &["run", "--once", "-p", "places"],
    &["search", "places", "paulo"],
    &["check", "-p", "places", "--format", "json"],
];

#[test]
fn an_index_of_other_fields_halts_its_pipeline_and_is_still_searched() {
    let world = indexed();
    world.reconfigure(
        "name = \"text\"",
        "name = { type = \"text\", fold = true }\npeople = \"i64\"",
    );
    assert_eq!(world.run(&["apply"]).code, 0);
    insta::assert_snapshot!("index_of_other_fields", story(&world, &ASKED));
    assert_eq!(world.run(&["run", "--once", "-p", "cities"]).code, 0, "the other sink goes on");
    // What the codes say is done, and the index is made of the new fields.
    std::fs::remove_dir_all(world.path("search")).expect("removed");
    assert_eq!(world.run(&["apply", "--again"]).code, 0);
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    assert_eq!(world.run(&["diff", "--deep"]).code, 0);
}

/// Each of an index's files says in its end which form it has.
fn of_a_later_version(folder: &Path) {
    let form = b"\"index_format_version\":";
    let mut altered = 0;
    for file in std::fs::read_dir(folder).expect("read") {
        let file = file.expect("a file").path();
        let mut bytes = std::fs::read(&file).expect("read");
        if let Some(at) = bytes.windows(form.len()).position(|window| window == form) {
            bytes[at + form.len()] = b'9';
            std::fs::write(&file, bytes).expect("written");
            altered += 1;
        }
    }
    assert!(altered > 0);
}

#[test]
fn an_index_of_another_version_halts_and_is_kept() {
    let world = indexed();
    of_a_later_version(&world.path("search"));
    let files = || std::fs::read_dir(world.path("search")).expect("read").count();
    let before = files();
    world.sql("app.db", "UPDATE cities SET people = 0");
    insta::assert_snapshot!("index_of_another_version", story(&world, &ASKED));
    assert_eq!(files(), before, "nothing is added or removed");
}

/// Starts a command whose files may not grow beyond so many blocks of 512 bytes, a full disk without
/// a disk, and ends it once it has told of something.
fn cramped_until(world: &World, blocks: u64, arguments: &[&str], told: &str) {
    let limit = format!(r#"trap "" XFSZ; ulimit -f {blocks}; exec "$0" "$@""#);
    let program = world.command(arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", &limit]).arg(program.get_program()).args(program.get_args());
    shell.current_dir(world.path(".")).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = shell.spawn().expect("started");
    let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
    let mut heard = Vec::new();
    let mut ended = false;
    for line in lines.map_while(Result::ok) {
        if line.contains(told) && !std::mem::replace(&mut ended, true) {
            // Not with -9, and once: it gives its lease back.
            let asked = Command::new("kill").arg(child.id().to_string()).status();
            assert!(asked.expect("started").success());
        }
        heard.push(line);
    }
    child.wait().expect("ended");
    assert!(ended, "{heard:?}");
}

/// Rule 105: a full disk at a sink is told by its code, loses nothing, and is over once there is
/// room.
#[test]
fn a_full_disk_at_a_sink_is_told_and_over_once_there_is_room() {
    for pipeline in ["cities", "places"] {
        let world = indexed();
        world.sql("app.db", "UPDATE cities SET name = name || hex(randomblob(500000))");
        let size = |name| std::fs::metadata(world.path(name)).expect("it is there").len();
        assert!(size("truekeep.db") < 1_000_000 && size("app.db") > 4_000_000);
        let run = ["run", "--once", "-p", pipeline];
        cramped_until(&world, 2_000, &run, "SINK_UNAVAILABLE");
        let run = world.run(&["run", "--once"]);
        assert_eq!(run.code, 0, "{}", run.text());
        assert_eq!(world.run(&["diff", "--deep"]).code, 0);
    }
}
