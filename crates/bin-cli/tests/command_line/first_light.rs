//! From a database to a complete mirror, command by command.

use crate::world::World;

/// A database with tables of several kinds, and no configuration.
fn database() -> World {
    let world = World::cities();
    std::fs::remove_file(world.path("truekeep.toml")).expect("it was there");
    world.sql(
        "app.db",
        "CREATE TABLE visits (city INTEGER, day TEXT, people INTEGER, PRIMARY KEY (city, day));
         CREATE VIEW big AS SELECT * FROM cities WHERE people > 1000000;
         CREATE TABLE log (line TEXT);",
    );
    world
}

#[test]
fn a_database_is_followed_from_nothing_to_complete() {
    let world = database();
    let mut story = String::new();
    for command in [
        "init sqlite:app.db",
        "check",
        "status",
        "coverage",
        "capture install",
        "capture verify",
        "check",
        "run --once",
        "status",
        "coverage",
        "diff",
        "wait",
        "apply",
        "migrate",
    ] {
        let mut said = world.run(&command.split(' ').collect::<Vec<_>>());
        // Pipelines take turns in any order.
        let mut lines: Vec<_> = said.stderr.lines().map(|line| format!("{line}\n")).collect();
        lines.sort();
        said.stderr = lines.concat();
        story += &format!("$ truekeep {command}\n{}\n", said.text());
    }
    insta::assert_snapshot!(story);
    let names: Vec<String> = world
        .open("app-mirror.db")
        .prepare("SELECT name FROM cities ORDER BY id")
        .and_then(|mut select| select.query_map([], |row| row.get(0))?.collect())
        .expect("the mirror is there");
    assert_eq!(names, ["Zürich", "東京", "Αθήνα", "القاهرة", "São Paulo"]);
}

#[test]
fn every_answer_is_data_in_json() {
    let world = World::cities();
    let mut story = String::new();
    for command in [
        "check",
        "capture install",
        "run --once",
        "status",
        "coverage",
        "diff",
        "wait",
        "explain cities",
        "explain SINK_AHEAD",
        "apply",
        "parked list",
        "check --pipeline cities --key 2",
        "migrate",
    ] {
        let mut arguments: Vec<_> = command.split(' ').collect();
        arguments.extend(["--format", "json"]);
        let said = world.run(&arguments);
        assert_eq!(said.code, if command == "check" { 4 } else { 0 }, "{command}: {}", said.text());
        assert_eq!(said.stderr, "", "{command}");
        // How often a worker looks and finds nothing depends on the machine; its last line does not.
        let last = said.stdout.lines().filter(|line| line.contains("\"ended\""));
        let last: String = last.map(|line| format!("{line}\n")).collect();
        let shown = if last.is_empty() { &said.stdout } else { &last };
        story += &format!("$ truekeep {command}\n{shown}\n");
    }
    insta::assert_snapshot!(story);
}

#[test]
fn a_configuration_is_not_overwritten() {
    let world = World::cities();
    let before = std::fs::read(world.path("truekeep.toml")).expect("read");
    insta::assert_snapshot!(world.run(&["init", "sqlite:app.db"]).text());
    assert_eq!(std::fs::read(world.path("truekeep.toml")).expect("read"), before);
}

#[test]
fn the_example_is_printed_and_nothing_is_written() {
    let world = World::empty();
    let said = world.run(&["init", "--example"]);
    assert_eq!((said.code, said.stdout.contains("[pipeline.products]")), (0, true));
    assert_eq!(world.run(&["init"]).code, 2, "a database or the example is meant");
    assert!(!world.path("truekeep.toml").exists());
}

#[test]
fn a_document_is_shown_for_one_key() {
    let world = World::cities();
    world.reconfigure(
        "key = \"id\"\n",
        "key = \"id\"\ndocument = { sql = \"SELECT name, json_object('n', people) AS facts, \
         x'00ff' AS raw, NULL AS none, 1e999 AS big FROM cities WHERE id = :id\", \
         json = [\"facts\"] }\n",
    );
    insta::assert_snapshot!(world.run(&["check", "-p", "cities", "--key", "2"]).text());
    let json = world.run(&["check", "-p", "cities", "--key", "2", "--format", "json"]);
    insta::assert_snapshot!("document_as_json", json.text());
    insta::assert_snapshot!(
        "document_of_nothing",
        world.run(&["check", "-p", "cities", "--key", "9"]).text()
    );
}

#[test]
fn every_code_and_exit_is_explained() {
    let world = World::empty();
    let all = world.run(&["explain"]);
    assert_eq!(all.code, 0);
    for entry in truekeep_core::code::REGISTRY {
        assert!(all.stdout.contains(entry.code.as_str()), "{}", entry.code);
        let one = world.run(&["explain", entry.code.as_str()]);
        assert_eq!(one.code, 0);
        assert!(one.stdout.contains(entry.remedy), "{}", one.text());
    }
    insta::assert_snapshot!(world.run(&["explain", "SINK_AHEAD"]).text());
}

#[test]
fn capture_is_removed_only_with_all_that_need_it() {
    let world = World::cities();
    let second = "\n[pipeline.towns]\nsource = \"app\"\ntable = \"cities\"\nkey = \"id\"\n\
        sink = \"towns\"\n\n[sink.towns]\nkind = \"sqlite\"\nurl = \"sqlite:mirror.db\"\n\
        table = \"towns\"\n";
    let text = std::fs::read_to_string(world.path("truekeep.toml")).expect("read");
    world.write("truekeep.toml", &(text + second));
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    let mut story = String::new();
    for command in
        ["capture remove", "capture remove -p towns", "capture remove -p towns -p cities"]
    {
        let said = world.run(&command.split(' ').collect::<Vec<_>>());
        story += &format!("$ truekeep {command}\n{}\n", said.text());
    }
    insta::assert_snapshot!(story);
    let left: u32 = world
        .open("app.db")
        .query_row("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'truekeep%'", [], |row| {
            row.get(0)
        })
        .expect("counted");
    assert_eq!(left, 0);
}

#[test]
fn pipelines_of_one_table_leave_each_others_watches_alone() {
    let world = World::cities();
    world.sql("app.db", "CREATE TABLE names (city INTEGER, name TEXT)");
    let second = "\n[pipeline.towns]\nsource = \"app\"\ntable = \"cities\"\nkey = \"id\"\n\
        watch = [{ table = \"names\", key = \"city\" }]\nsink = \"towns\"\n\n\
        [sink.towns]\nkind = \"sqlite\"\nurl = \"sqlite:mirror.db\"\ntable = \"towns\"\n";
    let text = std::fs::read_to_string(world.path("truekeep.toml")).expect("read");
    world.write("truekeep.toml", &(text + second));
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    for pipeline in ["towns", "cities"] {
        let said = world.run(&["capture", "verify", "-p", pipeline]);
        assert_eq!(said.code, 0, "{}", said.text());
        let said = world.run(&["capture", "install", "-p", pipeline]);
        assert_eq!(said.code, 0, "{}", said.text());
    }
    world.sql("app.db", "INSERT INTO names VALUES (3, 'Athens')");
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    let moved: u64 = world
        .open("mirror.db")
        .query_row("SELECT _version FROM towns WHERE id = 3", [], |row| row.get(0))
        .expect("it is there");
    assert!(moved > 5, "a watched change is a new version of the city: {moved}");
}

#[test]
fn a_watched_table_that_no_index_serves_is_warned_of() {
    let world = World::cities();
    world.sql("app.db", "CREATE TABLE names (city INTEGER, name TEXT)");
    world.sql("app.db", "CREATE TABLE countries (name TEXT PRIMARY KEY)");
    world.sql("app.db", "ALTER TABLE cities ADD COLUMN country TEXT");
    let sql = "SELECT c.name, (SELECT count(*) FROM names n WHERE n.city = c.id) AS names \
               FROM cities c WHERE c.id = :id";
    world.reconfigure(
        "key = \"id\"\n",
        &format!(
            "key = \"id\"\ndocument = {{ sql = \"{sql}\" }}\nwatch = [\
             {{ table = \"names\", key = \"city\" }}, \
             {{ table = \"countries\", via = \"country\" }}]\n"
        ),
    );
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    let said = world.run(&["check"]);
    assert_eq!(said.code, 0, "a warning is no failure");
    insta::assert_snapshot!(said.text());
}
