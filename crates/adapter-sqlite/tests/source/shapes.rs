//! Tables of many shapes, and the values that random writes draw from.

/// A table and the values its columns are drawn from.
pub struct Shape {
    pub name: &'static str,
    pub schema: &'static str,
    pub key: &'static [&'static str],
    /// Tables that are written, each with its columns and their values as SQL.
    pub tables: &'static [(&'static str, &'static [Column])],
}

/// A column and the values it is drawn from, as SQL.
pub type Column = (&'static str, &'static [&'static str]);

const INTEGERS: &[&str] = &["1", "2", "3", "4", "5", "NULL"];
const TEXTS: &[&str] = &["'a'", "'b'", "'A'", "'b '", "''", "'x:1'", "char(97,0,98)"];
const MIXED: &[&str] =
    &["1", "'1'", "x'31'", "1.0", "1.5", "'1.5'", "-0.0", "0", "'t:1'", "1e300*1e300", "NULL"];
const VALUES: &[&str] = &["'p'", "'q'", "'r'", "NULL", "7"];
pub const OR: &[&str] =
    &["", "", "", "OR ABORT", "OR FAIL", "OR IGNORE", "OR REPLACE", "OR ROLLBACK"];

pub const SHAPES: &[Shape] = &[
    Shape {
        name: "row number with unique, partial and expression indexes",
        schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, email TEXT UNIQUE COLLATE NOCASE, v, w TEXT);
                 CREATE UNIQUE INDEX part ON t (v) WHERE w IS NOT NULL;
                 CREATE UNIQUE INDEX expr ON t (lower(w) DESC, coalesce(v, 'none'));",
        key: &[],
        tables: &[("t", &[("id", INTEGERS), ("email", TEXTS), ("v", VALUES), ("w", TEXTS)])],
    },
    Shape {
        name: "text key with a hidden row number",
        schema: "CREATE TABLE t (id TEXT PRIMARY KEY NOT NULL, a, b, v, UNIQUE (a, b));",
        key: &[],
        tables: &[("t", &[("id", TEXTS), ("a", INTEGERS), ("b", INTEGERS), ("rowid", INTEGERS)])],
    },
    Shape {
        name: "without row numbers, composite",
        schema: "CREATE TABLE t (a TEXT, b INTEGER, v UNIQUE, PRIMARY KEY (b, a)) WITHOUT ROWID;",
        key: &[],
        tables: &[("t", &[("a", TEXTS), ("b", INTEGERS), ("v", VALUES)])],
    },
    Shape {
        name: "untyped key",
        schema: "CREATE TABLE t (id NOT NULL PRIMARY KEY, v UNIQUE);",
        key: &[],
        tables: &[("t", &[("id", MIXED), ("v", VALUES)])],
    },
    Shape {
        name: "strict any, composite",
        schema: "CREATE TABLE t (id ANY, n INT, v TEXT, PRIMARY KEY (id, n)) STRICT;",
        key: &[],
        tables: &[("t", &[("id", MIXED), ("n", INTEGERS), ("v", TEXTS)])],
    },
    Shape {
        name: "case-folded key",
        schema: "CREATE TABLE t (id TEXT NOT NULL PRIMARY KEY COLLATE NOCASE, v UNIQUE);",
        key: &[],
        tables: &[("t", &[("id", &["'a'", "'A'", "'b'", "'B'", "'ä'", "'Ä'"]), ("v", VALUES)])],
    },
    Shape {
        name: "space-folded key",
        schema: "CREATE TABLE t (id TEXT NOT NULL PRIMARY KEY COLLATE RTRIM, v UNIQUE);",
        key: &[],
        tables: &[("t", &[("id", &["'a'", "'a '", "'a  '", "' a'", "''", "' '"]), ("v", VALUES)])],
    },
    Shape {
        name: "real key",
        schema: "CREATE TABLE t (id REAL NOT NULL PRIMARY KEY, v UNIQUE);",
        key: &[],
        tables: &[(
            "t",
            &[("id", &["1", "1.0", "'1.5'", "0.1", "-0.0", "1e18", "9e18", "9.3e18", "-1e30", "9e999"]), ("v", VALUES)],
        )],
    },
    Shape {
        name: "blob key",
        schema: "CREATE TABLE t (id BLOB NOT NULL PRIMARY KEY, v BLOB UNIQUE) STRICT;",
        key: &[],
        tables: &[("t", &[("id", &["x''", "x'00'", "x'3a'", "x'ff'"]), ("v", &["x'01'", "NULL"])])],
    },
    Shape {
        name: "declared key beside a row number",
        schema: "CREATE TABLE t (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, v UNIQUE ON CONFLICT REPLACE);",
        key: &["id"],
        tables: &[("t", &[("n", INTEGERS), ("id", TEXTS), ("v", VALUES)])],
    },
    Shape {
        name: "generated and defaulted unique columns",
        schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, w, g AS (substr(v, 1, 1) || w) UNIQUE,
                 s AS (coalesce(v, '') || coalesce(w, '')) STORED UNIQUE,
                 d TEXT NOT NULL DEFAULT ('a') UNIQUE, n AS (d || '!') STORED, e INTEGER NOT NULL DEFAULT 7);
                 CREATE UNIQUE INDEX over ON t (upper(n), w) WHERE g IS NOT NULL;
                 CREATE UNIQUE INDEX of ON t (e + 1, v COLLATE NOCASE) WHERE id > 1;",
        key: &[],
        tables: &[(
            "t",
            &[("id", INTEGERS), ("v", TEXTS), ("w", VALUES), ("d", &["'a'", "'b'", "'c'", "NULL"]), ("e", &["7", "1", "NULL"])],
        )],
    },
    Shape {
        name: "foreign keys that cascade",
        schema: "PRAGMA foreign_keys = ON;
                 CREATE TABLE p (id INTEGER PRIMARY KEY, u UNIQUE);
                 CREATE TABLE t (id INTEGER PRIMARY KEY, p REFERENCES p ON DELETE CASCADE ON UPDATE CASCADE,
                 q REFERENCES p ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED);",
        key: &[],
        tables: &[
            ("p", &[("id", INTEGERS), ("u", VALUES)]),
            ("t", &[("id", INTEGERS), ("p", INTEGERS), ("q", INTEGERS)]),
        ],
    },
    Shape {
        name: "triggers of the user's that write the table",
        schema: "CREATE TABLE t (id INTEGER PRIMARY KEY, v);
                 CREATE TRIGGER again AFTER DELETE ON t WHEN OLD.id = 3 BEGIN INSERT INTO t VALUES (3, 'again'); END;
                 CREATE TRIGGER gone AFTER INSERT ON t WHEN NEW.v = 'q' BEGIN DELETE FROM t WHERE id = NEW.id; END;
                 CREATE TRIGGER other AFTER UPDATE OF v ON t WHEN NEW.v = 'r' BEGIN
                 UPDATE t SET v = 'followed' WHERE id = NEW.id + 1; END;",
        key: &[],
        tables: &[("t", &[("id", INTEGERS), ("v", VALUES)])],
    },
    Shape {
        name: "a name that needs quotes",
        schema: "CREATE TABLE \"t\" (\"a\"\"b\" TEXT, \"select\" INT, \"x.y z\" UNIQUE, PRIMARY KEY (\"a\"\"b\", \"select\"));",
        key: &[],
        tables: &[("t", &[("\"a\"\"b\"", TEXTS), ("\"select\"", &["1", "2"]), ("\"x.y z\"", VALUES)])],
    },
];

pub const RELATED: Shape = Shape {
    name: "related tables",
    schema: "CREATE TABLE author (id TEXT PRIMARY KEY NOT NULL, name, u UNIQUE);
             CREATE TABLE t (id INTEGER PRIMARY KEY, author TEXT, up INTEGER, v UNIQUE);
             CREATE TABLE variant (a INTEGER, b INTEGER, t TEXT, size, u UNIQUE, PRIMARY KEY (a, b)) WITHOUT ROWID;
             CREATE TABLE tag (t NUMERIC, name TEXT, UNIQUE (t, name));",
    key: &[],
    tables: &[
        ("t", &[("id", INTEGERS), ("author", &["'a'", "'b'", "7", "NULL"]), ("up", INTEGERS), ("v", VALUES)]),
        ("author", &[("id", &["'a'", "'b'", "7"]), ("name", VALUES), ("u", VALUES)]),
        ("variant", &[("a", &["1", "2"]), ("b", &["1", "2"]), ("t", &["1", "'2'", "'03'", "NULL"]), ("size", VALUES), ("u", VALUES)]),
        ("tag", &[("t", &["1", "'2'", "3.0", "NULL"]), ("name", TEXTS)]),
    ],
};

pub const RELATED_DOCUMENT: &str = "SELECT t.id, t.v, a.name AS author,
    (SELECT group_concat(coalesce(size, '-') || a || b, ',') FROM (SELECT * FROM variant WHERE variant.t = t.id ORDER BY a, b)) AS variants,
    (SELECT group_concat(name, ',') FROM (SELECT name FROM tag WHERE tag.t = t.id ORDER BY name)) AS tags,
    up.v AS up FROM t LEFT JOIN author a ON a.id = t.author LEFT JOIN t up ON up.id = t.up WHERE t.id = :id";
