//! The audit over every way of walking a table: it finds each difference once, whatever the page.

use std::collections::BTreeSet;

use rusqlite::params;
use truekeep_adapter_sqlite::{RelationSpec, SqliteSource};
use truekeep_core::ports::Capture;

use crate::fixture::App;
use crate::random::Draws;

/// A table `t` whose key is `id`, and values of it as SQL.
struct Keys {
    schema: &'static str,
    nullable: bool,
    values: &'static [&'static str],
}

const INTEGERS: &[&str] = &[
    "0",
    "1",
    "9",
    "10",
    "11",
    "99",
    "100",
    "101",
    "110",
    "1000",
    "1100",
    "123456",
    "-1",
    "-2",
    "-9",
    "-10",
    "-11",
    "-99",
    "-100",
    "-1000",
    "9223372036854775807",
    "9223372036854775806",
    "-9223372036854775807",
    "-9223372036854775808",
];

const TEXTS: &[&str] = &[
    "''",
    "'a'",
    "'a '",
    "'A'",
    "'ab'",
    "'b'",
    "'b:'",
    "'b:0A'",
    "'x:61'",
    "'x:'",
    "'n:'",
    "'u:FF'",
    "'t:a'",
    "'ä'",
    "'z'",
    "char(97, 0, 98)",
    "char(120, 0)",
    "CAST(x'FF' AS TEXT)",
    "CAST(x'61FF' AS TEXT)",
    "'[1]'",
    "char(0x10FFFF)",
];

const BLOBS: &[&str] =
    &["x''", "x'00'", "x'0A'", "x'0A00'", "x'61'", "x'62'", "x'FF'", "x'FF00FF'"];

const KEYS: &[Keys] = &[
    Keys { schema: "CREATE TABLE t (id INTEGER PRIMARY KEY)", nullable: false, values: INTEGERS },
    Keys { schema: "CREATE TABLE t (id INT UNIQUE) STRICT", nullable: true, values: INTEGERS },
    Keys { schema: "CREATE TABLE t (id TEXT PRIMARY KEY)", nullable: true, values: TEXTS },
    Keys { schema: "CREATE TABLE t (id TEXT PRIMARY KEY)", nullable: true, values: BLOBS },
    Keys {
        schema: "CREATE TABLE t (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
        nullable: false,
        values: TEXTS,
    },
    Keys { schema: "CREATE TABLE t (id BLOB PRIMARY KEY) STRICT", nullable: false, values: BLOBS },
    Keys { schema: "CREATE TABLE t (id PRIMARY KEY)", nullable: true, values: TEXTS },
    Keys { schema: "CREATE TABLE t (id PRIMARY KEY)", nullable: true, values: INTEGERS },
];

/// What stands in a feed though no row has such a key.
const STRAYS: &[&[u8]] =
    &[b"0123", b"-0", b"-", b"7", b"99999999999999999999", b"x:zz", b"b:0", b"n", b"q", b"a\0b"];

/// Every page of the audit, each no longer than it may be.
async fn audited(source: &SqliteSource, limit: u32) -> (Vec<String>, Vec<String>) {
    let (mut missed, mut ghosts, mut after) = (Vec::new(), Vec::new(), None);
    for _ in 0..1_000 {
        let page = source.audit(after.take(), limit).await.expect("a page");
        assert!(page.seen <= u64::from(limit) * 2, "{page:?}");
        missed.extend(page.missed.iter().map(ToString::to_string));
        ghosts.extend(page.ghosts.iter().map(ToString::to_string));
        after = page.next;
        if after.is_none() {
            missed.sort();
            ghosts.sort();
            return (missed, ghosts);
        }
    }
    panic!("the audit does not end");
}

/// Puts a row into the table, beside or past the triggers, and says which key it has in the feed.
fn key_of(app: &App, value: &str) -> Vec<u8> {
    app.run(&format!("INSERT INTO t (id) VALUES ({value})"));
    let newest = "SELECT CAST(key AS BLOB) FROM truekeep_feed_t ORDER BY version DESC LIMIT 1";
    app.db.query_row(newest, [], |row| row.get(0)).expect("a feed row")
}

fn shown(key: &[u8]) -> String {
    match str::from_utf8(key) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("u:{}", key.iter().map(|byte| format!("{byte:02X}")).collect::<String>()),
    }
}

/// Keys that the feed has missed, and keys that only the feed has.
type Differences = (BTreeSet<String>, BTreeSet<String>);

/// Makes the feed and the table differ, past the triggers.
fn tamper(app: &App, draws: &mut Draws, keys: &[(Vec<u8>, &str)]) -> Differences {
    let (mut missed, mut ghosts) = (BTreeSet::new(), BTreeSet::new());
    for (key, value) in keys {
        let feed = |change: &str| {
            let change = format!("{change} WHERE CAST(key AS BLOB) = ?1");
            assert_eq!(app.db.execute(&change, [key]).expect("changed"), 1);
        };
        let delete = || app.run(&format!("DELETE FROM t WHERE id = {value}"));
        match draws.below(12) {
            0 => {
                feed("DELETE FROM truekeep_feed_t");
                missed.insert(shown(key));
            }
            1 => {
                feed("UPDATE truekeep_feed_t SET deleted = 1");
                missed.insert(shown(key));
            }
            2 => {
                delete();
                ghosts.insert(shown(key));
            }
            // What a REPLACE may have removed has a number of its own.
            3 => {
                feed("UPDATE truekeep_feed_t SET deleted = 2");
                if draws.below(2) == 0 {
                    delete();
                }
            }
            4 => {
                feed("UPDATE truekeep_feed_t SET deleted = 1");
                delete();
            }
            _ => {}
        }
    }
    for stray in STRAYS {
        let deleted = draws.below(6) as i64;
        if deleted < 3 {
            let add = "INSERT INTO truekeep_feed_t VALUES (CAST(?1 AS TEXT), 1, ?2)";
            app.db.execute(add, params![stray, deleted]).expect("added");
        }
        if deleted == 0 {
            ghosts.insert(shown(stray));
        }
    }
    (missed, ghosts)
}

/// X7, X11: rows whose feed row is absent or a tombstone, and live feed rows without a row, are
/// found once each, in pages of any size, for every kind of key.
#[tokio::test]
async fn every_difference_is_found_once() {
    for (place, Keys { schema, nullable, values }) in KEYS.iter().enumerate() {
        for seed in 0..8 {
            let mut draws = Draws::of(seed * 100 + place as u64);
            let app = App::new(schema);
            let key = vec!["id".to_owned()];
            let source = app.source(RelationSpec { key, ..RelationSpec::of("t") }).await;
            let keys: Vec<(Vec<u8>, &str)> =
                values.iter().map(|value| (key_of(&app, value), *value)).collect();
            let triggers = "SELECT group_concat('DROP TRIGGER \"' || name || '\"', ';')
                            FROM sqlite_schema WHERE type = 'trigger'";
            app.run(&app.db.query_row(triggers, [], |row| row.get::<_, String>(0)).expect("some"));
            let (mut missed, ghosts) = tamper(&app, &mut draws, &keys);
            if draws.below(2) == 0 && *nullable {
                app.run("INSERT INTO t (id) VALUES (NULL)");
                missed.insert("n:".to_owned());
            }
            let wanted: (Vec<_>, Vec<_>) =
                (missed.into_iter().collect(), ghosts.into_iter().collect());
            for limit in [1, 2, 3, 5, 1_000] {
                let found = audited(&source, limit).await;
                assert_eq!(found, wanted, "{schema}, seed {seed}, pages of {limit}");
            }
        }
    }
}
