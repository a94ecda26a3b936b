//! Hard inputs: records that a sink refuses are parked and counted by reason, and cleared by one
//! command once it is mended; documents of the greatest size go through in one page.

use crate::world::World;

/// A world of one table that two pipelines deliver, into a mirror and into an index.
fn world(columns: &str, fields: &str, more: &str) -> World {
    let world = World::empty();
    let pipeline = |name: &str| {
        format!(
            "[pipeline.{name}]\nsource = \"app\"\ntable = \"things\"\nkey = \"id\"\nsink = \"{name}\"\n\
             {more}\n"
        )
    };
    world.write(
        "truekeep.toml",
        &format!(
            "[source.app]\nurl = \"sqlite:app.db\"\n\
             {}{}\
             [sink.mirror]\nkind = \"sqlite\"\nurl = \"sqlite:mirror.db\"\ntable = \"things\"\n\
             [sink.search]\nkind = \"tantivy\"\npath = \"search\"\n[sink.search.fields]\n{fields}",
            pipeline("mirror"),
            pipeline("search"),
        ),
    );
    world.sql("app.db", &format!("CREATE TABLE things (id INTEGER PRIMARY KEY, {columns})"));
    assert_eq!(world.run(&["capture", "install"]).code, 0);
    world
}

/// What a command says, as a story tells it.
fn told(world: &World, command: &str) -> String {
    let words: Vec<_> = command.split(' ').collect();
    format!("$ truekeep {command}\n{}\n", world.run(&words).text())
}

/// Ten columns, each of a kind of its own in the index.
const COLUMNS: &str = "a, b, c, d, e, f, g, h, i, j";
const FIELDS: &str = r#"
a = "i64"
b = "u64"
c = "f64"
d = "bool"
e = { type = "date" }
f = { type = "facet" }
g = { type = "json" }
h = { type = "keyword" }
i = { type = "text" }
j = { type = "keyword", required = true }
"#;

/// A thousand records that fit, and a thousand that do not: each hundred for a reason of its own.
fn a_thousand_bad(world: &World) {
    let column = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
    let bad = ["'x'", "-1", "'x'", "7", "'x'", "'x'", "'x'", "1", "1"];
    world.sql(
        "app.db",
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 2000)
         INSERT INTO things (id, j) SELECT n, iif(n > 1900, NULL, 'j') FROM n",
    );
    for (kind, (column, bad)) in column.iter().zip(bad).enumerate() {
        let (from, to) = (1_001 + kind * 100, 1_100 + kind * 100);
        let sql = format!("UPDATE things SET {column} = {bad} WHERE id BETWEEN {from} AND {to}");
        world.sql("app.db", &sql);
    }
}

/// What somebody put on the mirror: it refuses the same records, for reasons of its own.
fn put_up(world: &World) {
    let when = |kind: u32| format!("WHEN {kind} THEN RAISE(ABORT, 'kind {kind} is unwanted')");
    let cases: Vec<_> = (10..20).map(when).collect();
    world.sql(
        "mirror.db",
        &format!(
            "CREATE TRIGGER unwanted BEFORE INSERT ON things WHEN new._key > 1000 BEGIN
             SELECT CASE (new._key - 1) / 100 {} END; END",
            cases.join(" ")
        ),
    );
}

/// Rule 105: a thousand refused records stop no other, and stand in ten lines; whoever mended the
/// sink has one command to clear those of one reason, or all.
#[test]
fn a_thousand_refused_records_are_told_by_ten_reasons_and_cleared_by_one_command() {
    let world = world(COLUMNS, FIELDS, "");
    assert_eq!(world.run(&["run", "--once"]).code, 0, "both sinks are made");
    put_up(&world);
    a_thousand_bad(&world);
    let mut story = String::new();
    for command in [
        "run --once -p mirror",
        "run --once -p search",
        "coverage",
        "parked reasons",
        "parked reasons -p search --limit 2",
        "parked list -p search --limit 2",
    ] {
        story += &told(&world, command);
    }
    insta::assert_snapshot!("refused_for_ten_reasons", story);
    let json = world.run(&["parked", "reasons", "--limit", "2", "--format", "json"]);
    insta::assert_snapshot!("refused_for_ten_reasons_as_json", json.text());
    let found = world.run(&["search", "search", "*", "--limit", "1"]);
    assert!(found.stdout.starts_with("1000 found"), "{}", found.text());

    world.sql("mirror.db", "DROP TRIGGER unwanted");
    let mut story = String::new();
    for command in [
        "parked retry --reason unwanted",
        "parked reasons --limit 1",
        "run --once -p mirror",
        "diff -p mirror",
        "parked retry --reason required",
        "parked retry --code OTHER --reason required",
        "parked retry --reason required --format json",
        "parked retry --all --reason required",
        "parked retry 1 --code SINK_REFUSED",
        "parked retry",
    ] {
        story += &told(&world, command);
    }
    insta::assert_snapshot!("retried_by_reason", story);
}

/// Rule 101: once it is mended, whoever was refused for it is delivered.
#[test]
fn what_was_refused_for_a_reason_is_delivered_once_it_is_mended() {
    let world = world("a", "a = \"keyword\"\n", "document_max = \"1 kB\"");
    world.sql(
        "app.db",
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 40)
         INSERT INTO things SELECT n, iif(n % 2, printf('%.2000c', 'x'), iif(n % 4, 7, 'fits')) FROM n",
    );
    let mut story = String::new();
    for command in ["run --once -p mirror", "run --once -p search", "parked reasons"] {
        story += &told(&world, command);
    }
    world.reconfigure("1 kB", "1 MB");
    for command in [
        "parked retry --code DOCUMENT_TOO_LARGE",
        "run --once -p mirror",
        "run --once -p search",
        "parked reasons",
    ] {
        story += &told(&world, command);
    }
    insta::assert_snapshot!("mended_by_code", story);
}

/// A hundred documents just under the limit, in one page, arrive whole in both sinks.
#[test]
fn a_page_of_the_greatest_documents_goes_through() {
    let world = world("body TEXT", "body = \"text\"\n", "document_max = \"256 kB\"");
    // To the byte: the number counts eight.
    world.sql(
        "app.db",
        "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 100)
         INSERT INTO things SELECT n, replace(printf('%.32767c', 'x'), 'x', 'word' || (n % 10) || '   ')
         FROM n",
    );
    let run = world.run(&["run", "--once"]);
    assert_eq!(run.code, 0, "{}", run.text());
    assert_eq!(world.run(&["diff", "--deep"]).code, 0);
    let found = world.run(&["search", "search", "word7", "--limit", "1"]);
    assert!(found.stdout.starts_with("10 found"), "{}", found.text());
    // One byte too many is told of, and stops no other.
    world.sql("app.db", "UPDATE things SET body = body || body WHERE id = 7");
    assert_eq!(world.run(&["run", "--once"]).code, 4);
    let counted = world.run(&["parked", "reasons", "--format", "json"]);
    let counted: serde_json::Value = serde_json::from_str(&counted.stdout).expect("JSON");
    let reasons = counted["reasons"].as_array().expect("a list");
    assert_eq!(reasons.len(), 2, "one for each pipeline");
    assert!(reasons.iter().all(|reason| reason["records"] == 1 && reason["key"] == "7"));
}
