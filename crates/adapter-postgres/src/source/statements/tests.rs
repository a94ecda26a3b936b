//! Every statement, prepared on a database with everything that it speaks of.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use sqlx::{AssertSqlSafe, PgConnection};
use truekeep_core::ports::Capture;

use super::*;
use crate::source::{PostgresSource, RelationSpec, Watch};

mod plans;

#[test]
fn what_is_put_into_a_template_is_not_looked_at_again() {
    assert_eq!(template("a {x} {y} {z", &[("x", "{y}"), ("y", "'{}'")]), "a {y} '{}' {z");
}

const TABLES: &str = "CREATE TABLE authors (id int PRIMARY KEY, name text);
    CREATE TABLE books (shelf text, number int, author int, title text, PRIMARY KEY (shelf, number));
    CREATE TABLE pages (shelf text, number int, page int, PRIMARY KEY (shelf, number, page))";

/// Parts of statements that [`Statements`] holds whole.
const PARTS: [&str; 8] = [
    "capture/view",
    "document/load",
    "feed/changes",
    "feed/keys",
    "record/asked",
    "record/look",
    "record/named",
    "record/update",
];

/// What installing capture runs, and removing it.
const RUN: [&str; 10] = [
    "capture/create",
    "capture/drop",
    "feed/create",
    "feed/drop",
    "feed/reader",
    "trigger/body",
    "trigger/emptied",
    "trigger/mark",
    "trigger/truncate",
    "wake/tell",
];

async fn prepared(db: &mut PgConnection, name: &str, statement: &str) {
    let prepare = AssertSqlSafe(format!("PREPARE statement AS {statement}"));
    let prepared = sqlx::raw_sql(prepare).execute(&mut *db).await;
    assert!(prepared.is_ok(), "{name}: {prepared:?}\n{statement}");
    sqlx::raw_sql("DEALLOCATE statement").execute(db).await.expect("forgotten");
}

/// The files below a folder by their names, as `noun/verb`.
fn files(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for noun in std::fs::read_dir(folder).expect("a folder") {
        let noun = noun.expect("read").path();
        for verb in std::fs::read_dir(&noun).expect("a folder") {
            let verb = verb.expect("read").path();
            let name = verb.strip_prefix(folder).expect("inside").with_extension("");
            let text = std::fs::read_to_string(&verb).expect("read");
            found.push((name.to_str().expect("UTF-8").to_owned(), text));
        }
    }
    found
}

/// All that is written in the sources of a folder.
fn written(folder: &Path) -> String {
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("read").path();
        if path.is_dir() {
            all += &written(&path);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all += &std::fs::read_to_string(&path).expect("read");
        }
    }
    all
}

#[test]
fn every_file_is_used() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = written(&home.join("src"));
    for (folder, path) in [("sql", "\"../../sql/"), ("src/ledger/sql", "\"sql/")] {
        for (name, _) in files(&home.join(folder)) {
            let used = format!("include_str!({path}{name}.sql\")");
            assert!(sources.contains(&used), "nobody includes {folder}/{name}.sql");
        }
    }
}

#[tokio::test]
async fn every_statement_prepares() {
    let Some(test) = truekeep_postgres_server::database().await else { return };
    test.run(TABLES).await;
    let watch = vec![
        Watch::Child { table: "pages".into(), key: vec!["shelf".into(), "number".into()] },
        Watch::Parent { table: "authors".into(), via: vec!["author".into()], key: Vec::new() },
    ];
    let spec =
        RelationSpec { watch, live_when: Some("title <> ''".into()), ..RelationSpec::of("books") };
    let source = PostgresSource::open(&test.address, spec, Duration::from_secs(10)).await;
    let source = source.expect("opened");
    source.install().await.expect("installed");
    let relation = source.seen();
    let mut db = test.connect().await;
    for (name, statement) in all(&relation.statements) {
        prepared(&mut db, name, statement).await;
    }
    let (feed, mark) = (relation.names.feed(), relation.names.mark());
    let (version, table) = (relation.names.version(), relation.table.name.quoted());
    let (schemas, tables) = arrays(&relation.relations);
    let triggers = literal(&relation.names.triggers_like());
    let (schema, name) = (literal(&relation.table.name.schema), literal(&relation.table.name.name));
    let (canonical, list) = (relation.key.canonical("t."), relation.key.list("t."));
    let beyond = format!(" AND ({list}) > ({})", relation.key.values("$3::text").join(", "));
    let same = format!("t.author = {}", relation.referred[0].theirs.values("$1::text").join(", "));
    let source_of_keys = asked(&relation.key);
    let named = named(&relation.table, &relation.key, &source_of_keys);
    let values = [
        ("feed", feed.as_str()),
        ("mark", &mark),
        ("version", &version),
        ("table", &table),
        ("schemas", &schemas),
        ("tables", &tables),
        ("triggers", &triggers),
        ("schema", &schema),
        ("name", &name),
        ("canonical", &canonical),
        ("list", &list),
        ("beyond", &beyond),
        ("same", &same),
        ("named", &named),
        ("signature", &relation.statements.signature),
        ("stem", &literal(relation.names.stem())),
        ("conflict", "NOTHING"),
        ("start", START),
        ("born", BORN),
    ];
    let mut left = BTreeSet::new();
    for (name, text) in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("sql")) {
        if PARTS.contains(&name.as_str()) || RUN.contains(&name.as_str()) {
            left.insert(name);
            continue;
        }
        assert!(text.starts_with("--"), "{name} says what it is for");
        prepared(&mut db, &name, &template(&text, &values)).await;
    }
    let known = PARTS.iter().chain(&RUN).map(|name| (*name).to_owned());
    assert_eq!(left, known.collect(), "each is there");
    source.remove().await.expect("removed");
}

/// Each of them: one that is added is missing here until it is named.
fn all(statements: &Statements) -> Vec<(&'static str, &str)> {
    let Statements {
        view,
        shape,
        signature,
        changes,
        changes_within,
        pulse,
        pending,
        find,
        keys,
        counts,
        prune,
        register,
        started,
        record,
        record_new,
        look,
        load,
        exist,
        walk: [walk, walk_on],
        audit_feed,
        audit_table: [audit_table, audit_table_on],
        add,
        stored,
        begin_fill,
        lift,
        estimate,
    } = statements;
    vec![
        ("view", view),
        ("shape", shape),
        ("signature", signature),
        ("changes", changes),
        ("changes_within", changes_within),
        ("pulse", pulse),
        ("pending", pending),
        ("find", find),
        ("keys", keys),
        ("counts", counts),
        ("prune", prune),
        ("register", register),
        ("started", started),
        ("record", record),
        ("record_new", record_new),
        ("look", look),
        ("load", load),
        ("exist", exist),
        ("walk", walk),
        ("walk_on", walk_on),
        ("audit_feed", audit_feed),
        ("audit_table", audit_table),
        ("audit_table_on", audit_table_on),
        ("add", add),
        ("stored", stored),
        ("begin_fill", begin_fill),
        ("lift", lift),
        ("estimate", estimate),
    ]
}
