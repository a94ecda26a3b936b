//! The application's SQLite runs this text: it must know every word of it.

use rusqlite::Connection;

use crate::source::resolve::Resolved;
use crate::source::tokens::{Kind, tokens};
use truekeep_core::relation::{RelationSpec, Watch};

/// What came after SQLite 3.24, or is an extension that may be left out of a build.
const FORBIDDEN: &[&str] = &[
    "returning",
    "over",
    "filter",
    "iif",
    "unixepoch",
    "strict",
    "generated",
    "materialized",
    "nulls",
    "format",
    "concat",
    "concat_ws",
    "sign",
    "unhex",
    "octet_length",
    "string_agg",
    "distinct",
    "true",
    "false",
    "within",
    "with",
    "json",
    "json_array",
    "json_quote",
    "json_object",
];

#[test]
fn triggers_speak_sqlite_3_24() {
    let schema = "CREATE TABLE p (id INTEGER PRIMARY KEY, name UNIQUE);
        CREATE TABLE c (t TEXT, n INT, UNIQUE (t, n));
        CREATE TABLE t (id PRIMARY KEY, u TEXT UNIQUE, p REFERENCES p, r REAL NOT NULL DEFAULT 1 UNIQUE);
        CREATE UNIQUE INDEX e ON t (lower(u), p) WHERE u IS NOT NULL;
        CREATE TABLE w (a TEXT, b BLOB, PRIMARY KEY (a, b)) WITHOUT ROWID;";
    let db = Connection::open_in_memory().expect("opened");
    db.execute_batch(schema).expect("a schema");
    let watch = vec![
        Watch::Child { table: "c".into(), key: vec!["t".into()] },
        Watch::Parent { table: "p".into(), via: vec!["p".into()], key: Vec::new() },
    ];
    for spec in [RelationSpec { watch, ..RelationSpec::of("t") }, RelationSpec::of("w")] {
        let relation = Resolved::of(&db, &spec).expect("resolved");
        for trigger in &relation.triggers {
            let all = tokens(&trigger.sql);
            let words = all.iter().filter(|token| token.kind == Kind::Word);
            for word in words {
                let lower = word.text.to_ascii_lowercase();
                assert!(!FORBIDDEN.contains(&lower.as_str()), "{lower} in {}", trigger.sql);
            }
            assert!(!trigger.sql.contains("->"), "{}", trigger.sql);
            for statement in trigger.sql.split(';') {
                let updates = statement.trim_start().starts_with("UPDATE");
                assert!(!updates || !statement.contains("FROM"), "{}", trigger.sql);
            }
        }
    }
}

/// Applications put ICU's functions, or their own, in the place of these; SQLite refuses such a
/// function in a trigger under `trusted_schema = OFF`, and with it the application's statement.
#[test]
fn keys_call_no_function_that_applications_replace() {
    let db = Connection::open_in_memory().expect("opened");
    db.execute_batch("CREATE TABLE t (a, b TEXT, c BLOB, d REAL, PRIMARY KEY (a, b, c, d));")
        .expect("a schema");
    let relation = Resolved::of(&db, &RelationSpec::of("t")).expect("resolved");
    for trigger in &relation.triggers {
        for word in tokens(&trigger.sql) {
            let replaced =
                ["lower", "upper", "like"].contains(&word.text.to_ascii_lowercase().as_str());
            assert!(!replaced, "{} in {}", word.text, trigger.sql);
        }
    }
}
