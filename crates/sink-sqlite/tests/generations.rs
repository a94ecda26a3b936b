//! Generations of a mirror obey the rules of every sink with generations, and carry over what
//! others made on the table that readers see.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use tempfile::TempDir;
use truekeep_conformance::generations::GenerationsUnderTest;
use truekeep_core::code::Code;
use truekeep_core::ports::{Generations, Swap, Swapped};
use truekeep_core::{Generation, Key, SwapNumber};
use truekeep_sink_sqlite::{Layout, MirrorColumn, MirrorSpec, SqliteGenerations};

const TABLE: &str = "a \"mirror\"";

#[derive(Debug)]
struct Subject {
    folder: TempDir,
    generations: Arc<SqliteGenerations>,
}

impl Subject {
    fn path(&self) -> PathBuf {
        self.folder.path().join("mirror.db")
    }

    fn run(&self, sql: &str) {
        Connection::open(self.path()).expect("opened").execute_batch(sql).expect(sql);
    }

    fn names(&self, sql: &str) -> Vec<String> {
        let db = Connection::open(self.path()).expect("opened");
        let mut read = db.prepare(sql).expect(sql);
        let rows = read.query_map([], |row| row.get(0)).expect(sql);
        rows.collect::<Result<_, _>>().expect(sql)
    }

    async fn prepared(&self, generation: u64) {
        let sink = self.generations.open(Generation::new(generation)).await.expect("opened");
        sink.prepare().await.expect("prepared");
    }
}

async fn generations(path: PathBuf) -> Arc<SqliteGenerations> {
    let body = MirrorColumn { name: "body".into(), declared: "TEXT".into() };
    let spec = MirrorSpec { table: TABLE.into(), layout: Layout::Columns(vec![body]) };
    let opened = SqliteGenerations::open(&path, spec, Duration::from_secs(5)).await;
    Arc::new(opened.expect("opened"))
}

async fn open() -> Subject {
    let folder = tempfile::tempdir().expect("a folder");
    let generations = generations(folder.path().join("mirror.db")).await;
    Subject { folder, generations }
}

#[async_trait]
impl GenerationsUnderTest for Subject {
    fn generations(&self) -> Arc<dyn Generations> {
        Arc::clone(&self.generations) as Arc<dyn Generations>
    }

    async fn reopen(&mut self) {
        self.generations = generations(self.path()).await;
    }

    async fn seen(&self) -> BTreeMap<Key, String> {
        let db = Connection::open(self.path()).expect("opened");
        let sql = "SELECT _key, body FROM \"a \"\"mirror\"\"\"";
        let mut read = db.prepare(sql).expect("prepared");
        let rows = read.query_map([], |row| Ok((Key::new(row.get::<_, String>(0)?), row.get(1)?)));
        rows.expect("read").collect::<Result<_, _>>().expect("read")
    }
}

truekeep_conformance::generation_rules!(open);

fn swap(number: u64, from: u64, to: u64) -> Swap {
    let (from, to) = (Generation::new(from), Generation::new(to));
    Swap { number: SwapNumber::new(number), from, to }
}

/// Indexes and triggers of others go to the table that readers see then; their views go by its name.
#[tokio::test]
async fn what_others_made_on_the_table_is_carried_over() {
    let subject = open().await;
    for generation in [1, 2] {
        subject.prepared(generation).await;
    }
    subject.run(
        "CREATE TABLE log (what);
         CREATE INDEX by_body ON \"a \"\"mirror\"\"\" (body) WHERE body <> '';
         CREATE UNIQUE INDEX \"odd \"\" name\" ON \"a \"\"mirror\"\"\" (_version, _key);
         CREATE TRIGGER told AFTER INSERT ON \"a \"\"mirror\"\"\" BEGIN
           INSERT INTO log VALUES (new._key);
         END;
         CREATE VIEW bodies AS SELECT body FROM \"a \"\"mirror\"\"\";
         INSERT INTO \"a \"\"mirror\"\"__truekeep_g2\" VALUES ('k', 1, 1, 'second')",
    );
    let theirs = "SELECT type || ' ' || name || ' ' || tbl_name || ' ' || sql FROM sqlite_schema
        WHERE name IN ('by_body', 'odd \" name', 'told', 'bodies') ORDER BY name";
    let before = subject.names(theirs);
    assert_eq!(before.len(), 4);
    for (number, from, to) in [(1, 1, 2), (2, 2, 1), (3, 1, 2)] {
        let swapped = subject.generations.swap(&swap(number, from, to)).await;
        assert_eq!(swapped.expect("swapped"), Swapped::Done);
        assert_eq!(subject.names(theirs), before);
    }
    assert_eq!(subject.names("SELECT body FROM bodies"), ["second"]);
    subject.run("INSERT INTO \"a \"\"mirror\"\"\" VALUES ('l', 1, 1, 'x')");
    assert_eq!(subject.names("SELECT what FROM log"), ["l"]);
}

/// A generated column of others is in the way until it is on both or on none.
#[tokio::test]
async fn generated_column_is_named_and_nothing_is_swapped() {
    let subject = open().await;
    for generation in [1, 2] {
        subject.prepared(generation).await;
    }
    let add = "ADD COLUMN size INTEGER GENERATED ALWAYS AS (length(body)) VIRTUAL";
    subject.run(&format!("ALTER TABLE \"a \"\"mirror\"\"\" {add}"));
    let error = subject.generations.swap(&swap(1, 1, 2)).await.expect_err("it would be lost");
    assert_eq!(error.code, Code::MIRROR_MISMATCH);
    assert!(error.chain().contains("size"), "{}", error.chain());
    subject.run(&format!("ALTER TABLE \"a \"\"mirror\"\"__truekeep_g2\" {add}"));
    let swapped = subject.generations.swap(&swap(1, 1, 2)).await;
    assert_eq!(swapped.expect("swapped"), Swapped::Done);
}
