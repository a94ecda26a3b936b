//! The rules of every source, over SQLite in WAL mode and with a rollback journal.

use async_trait::async_trait;
use rusqlite::params;
use truekeep_adapter_sqlite::{Projection, RelationSpec, SqliteSource};
use truekeep_conformance::source::SourceUnderTest;
use truekeep_core::ports::{Capture, Feed, Records};

use crate::fixture::App;

#[derive(Debug)]
struct UnderTest {
    app: tokio::sync::Mutex<App>,
    source: SqliteSource,
}

const PUT: &str =
    "INSERT INTO t VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET text = excluded.text";

async fn fresh(mode: &str) -> UnderTest {
    let app = App::in_mode(mode, "CREATE TABLE t (id TEXT PRIMARY KEY, text TEXT) STRICT");
    let document = Projection::Columns(vec!["text".into()]);
    let source = app.open(RelationSpec { document, ..RelationSpec::of("t") }).await;
    UnderTest { app: tokio::sync::Mutex::new(app), source: source.expect("opened") }
}

#[async_trait]
impl SourceUnderTest for UnderTest {
    fn feed(&self) -> &dyn Feed {
        &self.source
    }

    fn records(&self) -> &dyn Records {
        &self.source
    }

    fn capture(&self) -> &dyn Capture {
        &self.source
    }

    async fn put(&self, key: &str, text: &str) {
        let app = self.app.lock().await;
        app.db.prepare_cached(PUT).expect("prepared").execute(params![key, text]).expect("put");
    }

    async fn delete(&self, key: &str) {
        let app = self.app.lock().await;
        app.db.execute("DELETE FROM t WHERE id = ?1", [key]).expect("deleted");
    }

    async fn put_and_roll_back(&self, key: &str, text: &str) {
        let app = self.app.lock().await;
        app.run("BEGIN");
        app.db.execute(PUT, params![key, text]).expect("put");
        app.run("ROLLBACK");
    }

    async fn break_capture(&self) {
        let app = self.app.lock().await;
        app.run(
            "BEGIN; CREATE TABLE made_anew (id TEXT PRIMARY KEY, text TEXT) STRICT;
             INSERT INTO made_anew SELECT * FROM t; DROP TABLE t;
             ALTER TABLE made_anew RENAME TO t; COMMIT",
        );
    }
}

mod wal {
    truekeep_conformance::source_rules!(super::fresh("wal").await);
}

mod rollback_journal {
    truekeep_conformance::source_rules!(super::fresh("delete").await);
}
