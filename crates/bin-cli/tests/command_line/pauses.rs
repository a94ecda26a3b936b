//! Pipelines are paused and resumed, and every answer says so.

use crate::world::World;

/// Runs commands in turn, and tells what each said.
fn story(world: &World, commands: &[&str]) -> String {
    let tell = |command: &&str| {
        let said = world.run(&command.split(' ').collect::<Vec<_>>());
        format!("$ truekeep {command}\n{}\n", said.text())
    };
    commands.iter().map(tell).collect()
}

/// Rule 107: the certificate stays what it was, and nothing after it is promised.
#[test]
fn a_paused_pipeline_says_so_everywhere_and_resumes_from_where_it_was() {
    let world = World::followed();
    let mut told =
        story(&world, &["pause cities --reason maintenance", "pause cities", "status", "coverage"]);
    world.sql("app.db", "INSERT INTO cities VALUES (6, 'Oslo', 700000)");
    told += &story(
        &world,
        &[
            "run --once",
            "wait --timeout 10ms",
            "explain cities",
            "reconcile",
            "resume cities",
            "resume cities",
            "run --once",
            "history",
        ],
    );
    insta::assert_snapshot!(told);
    assert_eq!(world.run(&["diff"]).code, 0);
}

#[test]
fn a_pause_is_data_in_json() {
    let world = World::followed();
    let json = ["--format", "json"];
    let mut told = String::new();
    for command in [&["pause", "--all"][..], &["status"], &["coverage"], &["resume", "--all"]] {
        let said = world.run(&[command, &json].concat());
        assert_eq!((said.code, said.stderr.as_str()), (0, ""));
        told += &said.stdout;
    }
    insta::assert_snapshot!(told);
}

#[test]
fn whose_pipeline_is_meant_has_to_be_said() {
    let world = World::followed();
    for command in [&["pause"][..], &["resume"], &["pause", "--all", "cities"]] {
        assert_eq!(world.run(command).code, 2, "{command:?}");
    }
    let said = world.run(&["pause", "towns"]);
    assert_eq!(said.code, 2, "{}", said.text());
    let fresh = World::cities();
    insta::assert_snapshot!("pause_of_what_never_ran", fresh.run(&["pause", "cities"]).text());
}
