//! Keys of every kind: their texts, their way back, and what is refused.

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ToSql, params};
use truekeep_adapter_sqlite::{RelationSpec, SqliteSource};
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_core::ports::{Capture, Feed, Loaded, Records};

use crate::fixture::{App, Asked, key};
use crate::random::Draws;

fn keyed(columns: &[&str]) -> RelationSpec {
    let key = columns.iter().map(|name| (*name).to_owned()).collect();
    RelationSpec { key, normal_form: true, ..RelationSpec::of("t") }
}

/// X22: a key's text is a function of its equality class; two classes never share a text.
#[tokio::test]
async fn each_kind_of_key_has_its_text() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "id INTEGER PRIMARY KEY",
            "(-1), (0), (9223372036854775807), ('12')",
            &["-1", "0", "12", "9223372036854775807"],
        ),
        (
            "id INT PRIMARY KEY",
            "(1), ('2'), (3.0), ('x'), (x'31'), (0.5)",
            &["1", "2", "3", "b:31", "r:0:2305843009213693952:0", "t:x"],
        ),
        ("id INTEGER PRIMARY KEY DESC", "(5)", &["5"]),
        (
            "id TEXT PRIMARY KEY",
            "('a'), (''), ('b:31'), (x'31'), (12), ('n:'), ('u:ff'), ('ö'), ('a ')",
            &["", "12", "a", "a ", "b:31", "x:623A3331", "x:6E3A", "x:753A6666", "ö"],
        ),
        (
            "id PRIMARY KEY",
            "(1), ('1'), (x'31'), (1.5), (-2.0), (9e999), (-9e999), (1e20)",
            &[
                "-2",
                "1",
                "R:21:3154593613024854016",
                "b:31",
                "r:-inf",
                "r:1:2305843009213693952:0",
                "r:inf",
                "t:1",
            ],
        ),
        ("id BLOB PRIMARY KEY", "(x''), (x'00ff'), ('t'), (3)", &["3", "b:", "b:00FF", "t:t"]),
        ("id REAL PRIMARY KEY", "(1), (-0.0), (2.25)", &["0", "1", "r:2:1152921504606846976:0"]),
        ("id NUMERIC PRIMARY KEY", "('1.0'), ('x'), (1e3)", &["1", "1000", "t:x"]),
        ("id TEXT COLLATE NOCASE PRIMARY KEY", "('Bob'), ('ÄB')", &["bob", "Äb"]),
        ("id TEXT COLLATE RTRIM PRIMARY KEY", "('a  '), (' b')", &[" b", "a"]),
    ];
    for (columns, values, wanted) in cases {
        let app =
            App::new(&format!("CREATE TABLE t ({columns}); INSERT INTO t (id) VALUES {values}"));
        let source = app.source(keyed(&[])).await;
        assert_eq!(source.changed(0).await, *wanted, "{columns}");
        assert_eq!(source.listed().await, *wanted, "{columns}");
        for key in *wanted {
            assert!(matches!(source.one(key).await, Loaded::Live(_)), "{columns}: {key}");
        }
    }
}

#[tokio::test]
async fn strict_columns_need_no_prefix() {
    let app = App::new(
        "CREATE TABLE t (id TEXT PRIMARY KEY) STRICT; INSERT INTO t VALUES ('a'), ('b:'), ('x:1'), ('t:1');
         CREATE TABLE b (id BLOB PRIMARY KEY) STRICT; INSERT INTO b VALUES (x'00ff'), (x'');
         CREATE TABLE a (id ANY PRIMARY KEY) STRICT; INSERT INTO a VALUES ('1'), (1), (x'31');
         CREATE TABLE i (id INT PRIMARY KEY) STRICT; INSERT INTO i VALUES (7);",
    );
    for (table, wanted) in [
        ("t", vec!["a", "t:1", "x:623A", "x:783A31"]),
        ("b", vec!["", "00FF"]),
        ("a", vec!["1", "b:31", "t:1"]),
        ("i", vec!["7"]),
    ] {
        let source = app.source(RelationSpec::of(table)).await;
        assert_eq!(source.listed().await, wanted, "{table}");
    }
}

/// X22: composite keys are JSON arrays, so neighbours do not run together.
#[tokio::test]
async fn composite_keys_are_injective() {
    let app = App::new(
        "CREATE TABLE t (a, b TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID;
         INSERT INTO t VALUES (1, '11'), (11, '1'), ('1', '11'), ('a\",\"', 'b'), ('a', '\",\"b'),
         ('\\', '\"'), (x'00', char(10)), ('', ''), ('x', 'null'), (1.5, '[')",
    );
    let source = app.t().await;
    let wanted = [
        "[\"b:00\",\"x:0A\"]",
        "[\"r:1:2305843009213693952:0\",\"[\"]",
        "[\"t:\",\"\"]",
        "[\"t:1\",\"11\"]",
        "[\"t:\\\\\",\"\\\"\"]",
        "[\"t:a\",\"\\\",\\\"b\"]",
        "[\"t:a\\\",\\\"\",\"b\"]",
        "[\"t:x\",\"null\"]",
        "[1,\"11\"]",
        "[11,\"1\"]",
    ];
    assert_eq!(source.listed().await, wanted);
    for key in wanted {
        assert!(matches!(source.one(key).await, Loaded::Live(_)), "{key}");
        serde_json::from_str::<serde_json::Value>(key).expect("JSON");
    }
}

/// X62: text that no row's key can have finds no row, although the database would convert it.
#[tokio::test]
async fn a_foreign_key_finds_nothing() {
    let app = App::new(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (7, 'seven');
         CREATE TABLE n (id TEXT COLLATE NOCASE PRIMARY KEY); INSERT INTO n VALUES ('a'), ('NULL');
         CREATE TABLE c (a, b, PRIMARY KEY (a, b)); INSERT INTO c VALUES (1, 2)",
    );
    let cases = [
        (
            "t",
            vec![
                "007",
                "+7",
                " 7",
                "7.0",
                "seven",
                "99999999999999999999",
                "",
                "n:",
                "u:37",
                "t:7",
            ],
        ),
        ("n", vec!["A", "b:", "x:61", "x:zz", "n:"]),
        (
            "c",
            vec![
                "[1, 2]",
                "[1,2",
                "[1]",
                "[1,2,3]",
                "1",
                "[01,2]",
                "[\"1\",2]",
                "[\"t:1\",2]",
                "[null,2]",
            ],
        ),
    ];
    for (table, keys) in cases {
        let source =
            app.source(RelationSpec { normal_form: true, ..RelationSpec::of(table) }).await;
        let keys: Vec<_> = keys.into_iter().map(key).collect();
        let loaded = source.load(&keys, usize::MAX).await.expect("loaded");
        assert!(loaded.iter().all(|loaded| *loaded == Loaded::Absent), "{table}: {loaded:?}");
        let found = source.find(&keys).await.expect("found");
        assert!(found.iter().all(Option::is_none), "{table}: {found:?}");
        // NULL, an empty blob and a text: values that a row could have, and none has.
        let values = ["n:", "b:", "[\"t:1\",2]", "[null,2]"];
        let canonical = source.canonical(&keys).await.expect("answered");
        for (key, canonical) in keys.iter().zip(canonical) {
            assert!(!canonical || values.contains(&key.as_str()), "{table}: {key}");
        }
    }
}

/// X62: foreign keys are left alone when keys are numbered; the others say what the table says.
#[tokio::test]
async fn numbering_leaves_foreign_keys_alone() {
    let app = App::new("CREATE TABLE t (id INTEGER PRIMARY KEY, v); INSERT INTO t VALUES (7, 1)");
    let source = app.t().await;
    let before = source.newest().await;
    let numbered =
        source.number(&[key("007"), key("7"), key("x"), key("8")]).await.expect("numbered");
    assert_eq!(numbered.foreign, [key("007"), key("x")]);
    assert_eq!(numbered.newest.map(|v| v.get()), Some(source.newest().await));
    let changed = source.changes_after(before).await;
    let deleted: Vec<(&str, bool)> =
        changed.iter().map(|(key, change)| (key.as_str(), change.deleted)).collect();
    assert_eq!(deleted, [("7", false), ("8", true)]);
    let none = source.number(&[key("x")]).await.expect("numbered");
    assert_eq!((none.newest, none.foreign), (None, vec![key("x")]));
}

/// Any double in a key is found again by its text, or says that it cannot be followed.
#[tokio::test]
async fn random_doubles_are_keys() {
    let app = App::new("CREATE TABLE t (id PRIMARY KEY, bits INTEGER)");
    let source = app.t().await;
    let mut draws = Draws::of(1);
    let mut put = app.db.prepare("INSERT OR IGNORE INTO t VALUES (?1, ?2)").expect("prepared");
    app.run("BEGIN");
    for n in 0..4_000 {
        let bits = draws.next();
        let real = match n % 4 {
            0 => f64::from_bits(bits),
            1 => (bits as i64) as f64 / 1e6,
            2 => (bits >> 11) as f64 * 2f64.powi((bits % 120) as i32 - 110),
            _ => f64::from((bits % 1_000_000) as u32) / 100.0,
        };
        if real.is_finite() {
            put.execute(params![real, real.to_bits() as i64]).expect("put");
        }
    }
    app.run("COMMIT");
    let keys: Vec<_> =
        source.changes_after(0).await.into_values().map(|change| change.key).collect();
    let (mut live, mut refused) = (0, 0);
    for (key, loaded) in keys.iter().zip(source.load(&keys, usize::MAX).await.expect("loaded")) {
        match loaded {
            Loaded::Live(_) => live += 1,
            Loaded::Unloadable(code, _) if code == Code::KEY_REFUSED => {
                assert_eq!(key.as_str(), "r:?");
                refused += 1;
            }
            other => panic!("{key}: {other:?}"),
        }
    }
    let tiny_or_huge = "abs(id) < 1.0 / (1 << 60) AND id <> 0 OR abs(id) / (1 << 62) >= (1 << 62)";
    let count = |condition: &str| -> usize {
        let sql = format!("SELECT count(*) FROM t WHERE {condition}");
        app.db.query_row(&sql, [], |row| row.get(0)).expect("counted")
    };
    assert_eq!(refused, 1, "they share one text, which is refused");
    assert_eq!(live, count("1") - count(tiny_or_huge));
    assert!(live > 2_500);
}

/// Bytes bound as text.
struct Raw<'a>(&'a [u8]);

impl ToSql for Raw<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.0)))
    }
}

async fn refused(source: &SqliteSource, text: &str) {
    match source.one(text).await {
        Loaded::Unloadable(code, _) if code == Code::KEY_REFUSED => {}
        other => panic!("{text}: {other:?}"),
    }
}

/// Text with NUL is a key; text that is not UTF-8 says that it cannot be followed, and its row is
/// not forgotten.
#[tokio::test]
async fn text_with_nul_is_a_key_and_broken_text_is_refused_visibly() {
    for columns in
        ["id TEXT PRIMARY KEY", "id PRIMARY KEY", "id TEXT, n DEFAULT 1, PRIMARY KEY (id, n)"]
    {
        let app = App::new(&format!("CREATE TABLE t ({columns})"));
        let source = app.t().await;
        let texts: [&[u8]; 4] = [b"a\0b", b"a\0c", b"\xff\xfe", b"\xc3("];
        for text in texts {
            app.db.execute("INSERT INTO t (id) VALUES (?1)", [Raw(text)]).expect("inserted");
        }
        let changed = source.changed(0).await;
        assert_eq!(changed.len(), 4, "{columns}: {changed:?}");
        let (broken, fine): (Vec<_>, Vec<_>) =
            changed.into_iter().partition(|text| text.starts_with("u:"));
        assert_eq!((broken.len(), fine.len()), (2, 2), "{columns}");
        for text in &broken {
            refused(&source, text).await;
            assert!(source.find(&[key(text)]).await.expect("found")[0].is_some());
        }
        for text in &fine {
            assert!(matches!(source.one(text).await, Loaded::Live(_)), "{columns}: {text}");
        }
        assert_eq!(source.listed().await, fine);
        let page = source.audit(None, 100).await.expect("a page");
        assert_eq!((page.missed, page.ghosts), (vec![], vec![]));
        app.run("DELETE FROM t");
        for (text, change) in source.changes_after(0).await {
            assert!(change.deleted, "{text}");
            assert_eq!(source.one(&text).await, Loaded::Absent, "{text}");
        }
    }
}

/// X22: NULL in a key is refused at install; a row that gets one later is not lost silently, and
/// the application's write does not fail.
#[tokio::test]
async fn null_in_a_key_is_refused_visibly() {
    let app = App::new("CREATE TABLE t (id TEXT PRIMARY KEY, v); INSERT INTO t VALUES (NULL, 1)");
    let source = app.open(RelationSpec::of("t")).await.expect("opened");
    let error = source.install().await.expect_err("refused");
    assert_eq!((error.class, error.code.clone()), (FailureClass::Halted, Code::KEY_REFUSED));
    assert!(error.detail.contains("1 rows"), "{}", error.detail);
    app.run("DELETE FROM t");
    source.capture().await;
    app.run("INSERT INTO t VALUES (NULL, 2), (NULL, 3), ('a', 4)");
    assert_eq!(source.changed(0).await, ["a", "n:"]);
    refused(&source, "n:").await;
    assert_eq!(source.listed().await, ["a"]);
    app.run("UPDATE t SET id = 'b' WHERE v = 2");
    refused(&source, "n:").await;
    app.run("DELETE FROM t WHERE id IS NULL");
    assert_eq!(source.one("n:").await, Loaded::Absent);
    assert!(source.changes_after(0).await["n:"].deleted);
}

/// Views, virtual tables and tables without a usable key are refused, each with what to do.
#[tokio::test]
async fn what_cannot_be_followed_is_refused_with_a_remedy() {
    let app = App::new(
        "CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT UNIQUE, plain, cased TEXT UNIQUE COLLATE NOCASE);
         CREATE VIEW v AS SELECT * FROM items;
         CREATE VIRTUAL TABLE f USING fts5(a);
         CREATE TABLE none (a, b);
         CREATE TABLE loose (a TEXT PRIMARY KEY COLLATE RTRIM);
         CREATE TABLE part (a TEXT); CREATE UNIQUE INDEX pi ON part (a) WHERE a > 'b';",
    );
    let cases = [
        ("v", vec![], Code::RELATION_REFUSED, "is a view"),
        ("f", vec![], Code::RELATION_REFUSED, "is a virtual table"),
        ("f_data", vec![], Code::RELATION_REFUSED, "belongs to a virtual table"),
        ("sqlite_schema", vec![], Code::RELATION_REFUSED, "no table of the application"),
        ("none", vec![], Code::RELATION_REFUSED, "no primary key"),
        ("none", vec!["a"], Code::KEY_REFUSED, "no unique index"),
        ("part", vec!["a"], Code::KEY_REFUSED, "no unique index"),
        ("item", vec![], Code::RELATION_MISSING, "nearest name is \"items\""),
        ("items", vec!["nam"], Code::RELATION_MISSING, "nearest name is \"name\""),
        ("items", vec!["plain"], Code::KEY_REFUSED, "no unique index"),
        ("items", vec!["cased"], Code::KEY_REFUSED, "NOCASE"),
        ("loose", vec![], Code::KEY_REFUSED, "RTRIM"),
    ];
    for (table, key, code, text) in cases {
        let key = key.into_iter().map(str::to_owned).collect();
        let error =
            app.open(RelationSpec { key, ..RelationSpec::of(table) }).await.expect_err(table);
        assert_eq!((error.class, &error.code), (FailureClass::Halted, &code), "{table}");
        assert!(error.detail.contains(text), "{table}: {}", error.detail);
    }
    let app = App::new("PRAGMA encoding = 'UTF-16'; CREATE TABLE t (id INTEGER PRIMARY KEY)");
    let error = app.open(RelationSpec::of("t")).await.expect_err("refused");
    assert_eq!(error.code, Code::RELATION_REFUSED);
}

/// Reserved and quoted names, dots, spaces and quotes, in tables and columns.
#[tokio::test]
async fn any_name_can_be_followed() {
    for table in ["select", "a\"b", "a.b", "a b", "it's", "ä", "[x]", "t;--", "%s"] {
        let name = format!("\"{}\"", table.replace('"', "\"\""));
        let app = App::new(&format!(
            "CREATE TABLE {name} (\"order\" TEXT, \"a\"\"b\" INT NOT NULL UNIQUE, \"c.d e'\" TEXT, PRIMARY KEY (\"order\"))"
        ));
        let spec = RelationSpec { key: vec!["a\"b".into()], ..RelationSpec::of(table) };
        let source = app.source(spec).await;
        app.run(&format!("INSERT OR REPLACE INTO {name} VALUES ('x', 1, 'v'), ('y', 2, 'w')"));
        app.run(&format!("UPDATE OR REPLACE {name} SET \"order\" = 'x' WHERE \"a\"\"b\" = 2"));
        assert_eq!(source.changed(0).await, ["1", "2"], "{table}");
        assert_eq!(source.listed().await, ["2"], "{table}");
        source.remove().await.expect("removed");
        let left: i64 = app
            .db
            .query_row(
                "SELECT count(*) FROM sqlite_schema WHERE name LIKE 'truekeep%'",
                [],
                |row| row.get(0),
            )
            .expect("counted");
        assert_eq!(left, 0, "{table}");
    }
}
