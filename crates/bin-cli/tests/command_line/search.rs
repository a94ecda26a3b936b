//! `search` finds what a pipeline has delivered into its index, while it is delivered.

use crate::world::{CONFIG, World};

/// The cities in an index beside the mirror.
pub const INDEX: &str = r#"
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
name = { type = "text", fold = true }
people = { type = "i64", fast = true }
"#;

fn indexed() -> World {
    let world = World::cities();
    world.write("truekeep.toml", &format!("{CONFIG}{INDEX}"));
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    let run = world.run(&["run", "--once"]);
    assert_eq!(run.code, 0, "{}", run.text());
    world
}

#[test]
fn a_change_is_found_once_it_was_delivered() {
    let world = indexed();
    insta::assert_snapshot!("found", world.run(&["search", "places", "sao"]).text());
    let json = world.run(&["search", "places", "sao", "--format", "json"]);
    insta::assert_snapshot!("found_as_json", json.text());
    world.sql(
        "app.db",
        "UPDATE cities SET name = 'Saint Paul' WHERE id = 5; DELETE FROM cities WHERE id = 2;",
    );
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    insta::assert_snapshot!("nothing_found", world.run(&["search", "places", "sao"]).text());
    let all = world.run(&["search", "places", "*", "--limit", "2"]);
    insta::assert_snapshot!("best_shown", all.text());
    assert_eq!(world.run(&["diff"]).code, 0, "both sinks hold what the source has");
    assert_eq!(world.run(&["diff", "--deep"]).code, 0);
}

#[test]
fn a_bad_query_is_told_with_its_place() {
    let world = indexed();
    let said = world.run(&["search", "places", "Zürich AND town:x"]);
    insta::assert_snapshot!("bad_query", said.text());
    let json = world.run(&["search", "places", "(Zürich", "--format", "json"]);
    insta::assert_snapshot!("bad_query_as_json", json.text());
    let said = world.run(&["search", "places", "x", "--field", "nam"]);
    insta::assert_snapshot!("bad_field", said.text());
}

#[test]
fn what_cannot_be_searched_says_so() {
    let world = indexed();
    insta::assert_snapshot!("mirror_searched", world.run(&["search", "cities", "x"]).text());
    std::fs::remove_dir_all(world.path("search")).expect("it was there");
    insta::assert_snapshot!("no_index", world.run(&["search", "places", "x"]).text());
    assert!(!world.path("search").exists(), "it is not made");
    world.write("truekeep.toml", CONFIG);
    insta::assert_snapshot!("no_index_at_all", world.run(&["search", "cities", "x"]).text());
    insta::assert_snapshot!("unknown_searched", world.run(&["search", "citys", "x"]).text());
}

/// Rule 37: a configuration whose fields are not the index's is told by `check` and by the worker.
#[test]
fn check_holds_the_fields_against_the_index() {
    let world = indexed();
    insta::assert_snapshot!("index_fits", world.run(&["check", "-p", "places"]).text());
    world.reconfigure("id = \"i64\"\n", "id = \"u64\"\n");
    world.reconfigure("fold = true", "language = \"german\"");
    let said = world.run(&["check", "-p", "places"]);
    insta::assert_snapshot!("index_differs", said.text());
    world.reconfigure("id = \"u64\"\n", "idd = \"u64\"\n");
    insta::assert_snapshot!("value_missing", world.run(&["check", "-p", "places"]).text());
}

#[test]
fn refused_records_are_parked_by_the_field_and_stop_no_other() {
    let world = indexed();
    world.sql("app.db", "UPDATE cities SET people = 'many' WHERE id IN (1, 3)");
    world.run(&["run", "--once"]);
    insta::assert_snapshot!("refused", world.run(&["parked", "list"]).text());
    world.sql("app.db", "UPDATE cities SET people = 1 WHERE id IN (1, 3)");
    assert_eq!(world.run(&["run", "--once"]).code, 0);
    assert!(world.run(&["search", "places", "people:1"]).stdout.starts_with("2 found"));
}
