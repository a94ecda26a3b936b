//! The mirror obeys the rules of every sink, in both of its layouts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::Connection;
use tempfile::TempDir;
use truekeep_conformance::sink::SinkUnderTest;
use truekeep_core::Key;
use truekeep_core::ports::Sink;
use truekeep_sink_sqlite::{Layout, MirrorColumn, MirrorSpec, SqliteSink};

#[derive(Debug)]
struct Subject {
    folder: TempDir,
    spec: MirrorSpec,
    sink: Option<Arc<SqliteSink>>,
}

impl Subject {
    async fn open(layout: Layout) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let spec = MirrorSpec { table: "mirror".into(), layout };
        let mut subject = Self { folder, spec, sink: None };
        subject.reopen().await;
        subject
    }

    fn aside(&self) -> Connection {
        Connection::open(self.folder.path().join("mirror.db")).expect("opened beside the sink")
    }

    /// The text of a record's `body`, as SQL.
    fn body(&self) -> &'static str {
        match self.spec.layout {
            Layout::Json { .. } => "document ->> 'body'",
            Layout::Columns(_) => "body",
        }
    }
}

#[async_trait]
impl SinkUnderTest for Subject {
    fn sink(&self) -> Arc<dyn Sink> {
        Arc::clone(self.sink.as_ref().expect("it is open")) as Arc<dyn Sink>
    }

    async fn reopen(&mut self) {
        self.sink = None;
        let path = self.folder.path().join("mirror.db");
        let sink = SqliteSink::open(&path, self.spec.clone(), Duration::from_secs(5)).await;
        let sink = sink.expect("opened");
        sink.prepare().await.expect("prepared");
        self.sink = Some(Arc::new(sink));
    }

    async fn contents(&self) -> BTreeMap<Key, String> {
        let aside = self.aside();
        let sql = format!("SELECT _key, {} FROM mirror", self.body());
        let mut read = aside.prepare(&sql).expect("prepared");
        let rows = read.query_map([], |row| {
            Ok((Key::new(row.get::<_, String>(0)?), row.get::<_, String>(1)?))
        });
        rows.expect("read").collect::<Result<_, _>>().expect("read")
    }

    async fn poison(&self) -> Option<String> {
        let body = "poison";
        let new = match self.spec.layout {
            Layout::Json { .. } => "NEW.document ->> 'body'",
            Layout::Columns(_) => "NEW.body",
        };
        let refusal = format!("BEGIN SELECT RAISE(ABORT, 'not here') WHERE {new} = '{body}'; END");
        let sql = format!(
            "CREATE TRIGGER on_insert BEFORE INSERT ON mirror {refusal};
             CREATE TRIGGER on_update BEFORE UPDATE ON mirror {refusal};"
        );
        self.aside().execute_batch(&sql).expect("triggers are made");
        Some(body.to_owned())
    }

    async fn plant(&self, key: &Key, body: &str) -> bool {
        let (column, body) = match self.spec.layout {
            Layout::Json { .. } => ("document", format!("{{\"body\":\"{body}\"}}")),
            Layout::Columns(_) => ("body", body.to_owned()),
        };
        let sql = format!(
            "INSERT INTO mirror (_key, _rules, _version, {column}) VALUES (?1, '?', -1, ?2)"
        );
        self.aside().execute(&sql, [key.as_str(), &body]).expect("planted");
        true
    }

    async fn alter(&self, key: &Key, body: &str) -> bool {
        let set = match self.spec.layout {
            Layout::Json { .. } => "document = json_object('body', ?2)",
            Layout::Columns(_) => "body = ?2",
        };
        let sql = format!("UPDATE mirror SET {set} WHERE _key = ?1");
        self.aside().execute(&sql, [key.as_str(), body]).expect("altered") == 1
    }

    async fn empty(&self) -> bool {
        self.aside().execute("DELETE FROM mirror", []).expect("emptied");
        true
    }
}

mod json {
    use super::{Layout, Subject};

    async fn open() -> Subject {
        Subject::open(Layout::Json { column: "document".into() }).await
    }

    truekeep_conformance::sink_rules!(open);
}

mod columns {
    use super::{Layout, MirrorColumn, Subject};

    async fn open() -> Subject {
        let body = MirrorColumn { name: "body".into(), declared: "INTEGER".into() };
        Subject::open(Layout::Columns(vec![body])).await
    }

    truekeep_conformance::sink_rules!(open);
}
