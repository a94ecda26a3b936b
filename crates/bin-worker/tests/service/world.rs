//! A folder with a source, its configuration, and whatever workers make of it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::Value;
use truekeep::Config;
use truekeep::status::Known;
use truekeep::wiring::{Purpose, open_ledger, open_source};
use truekeep_core::certificate::State;
use truekeep_core::{Moment, Place};

/// How often a question is asked before a test gives up, and the pause between: two minutes.
const ASKED_MAX: u32 = 6_000;
const PAUSE: Duration = Duration::from_millis(20);

/// A world.
#[derive(Debug)]
pub struct World {
    folder: tempfile::TempDir,
}

impl World {
    /// A source with the table `things`, and one pipeline of the same name.
    pub fn new(lease: &str) -> Self {
        let world = Self { folder: tempfile::tempdir().expect("a folder") };
        let source = world.source();
        source
            .execute_batch(
                "PRAGMA journal_mode = wal;
                 CREATE TABLE things (id INTEGER PRIMARY KEY, code TEXT UNIQUE, body TEXT, size REAL);",
            )
            .expect("an empty file takes a table");
        world.configure(&format!("{}[worker]\nlease = \"{lease}\"\n{LISTEN}", pipeline("things")));
        world
    }

    pub fn configure(&self, text: &str) {
        std::fs::write(self.config_path(), text).expect("written");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn config_path(&self) -> PathBuf {
        self.path("truekeep.toml")
    }

    pub fn config(&self) -> Config {
        Config::load(&self.config_path()).expect("a good configuration")
    }

    pub fn source(&self) -> Connection {
        connect(&self.path("source.db"))
    }

    pub fn mirror(&self) -> Connection {
        connect(&self.path("mirror.db"))
    }

    /// Installs capture for every pipeline, and fills it.
    pub fn capture(&self) {
        let config = self.config();
        wait_for(async {
            for pipeline in &config.pipelines {
                let source = open_source(&config, pipeline).await.expect("opened");
                source.capture.install().await.expect("installed");
                while !source.capture.fill().await.expect("filled").done {}
            }
        });
    }

    /// What the ledger knows of a pipeline.
    pub fn known(&self, pipeline: &str) -> Known {
        let config = self.config();
        let name = &config.pipeline(pipeline).expect("configured").name;
        wait_for(async {
            let ledger = open_ledger(&config, Purpose::Read).await.expect("opened");
            Known::read(&ledger, name).await.expect("read")
        })
    }

    /// What the source is at now.
    pub fn newest(&self, pipeline: &str) -> Moment {
        let config = self.config();
        let pipeline = config.pipeline(pipeline).expect("configured");
        let known = self.known(pipeline.name.as_str());
        wait_for(async {
            let source = open_source(&config, pipeline).await.expect("opened");
            let consumer = known.consumer().expect("announced");
            source.feed.view(&consumer, &Place::START).await.expect("read").newest
        })
    }

    /// Waits until the certificate is complete at what the source is at.
    pub fn wait_until_complete(&self, pipeline: &str) {
        until(|| {
            let known = self.known(pipeline);
            known.state() == Some(State::Complete) && known.moment() == Some(&self.newest(pipeline))
        });
    }

    /// The rows of a table on both sides: they are to be equal, values and their types.
    pub fn assert_equal(&self, table: &str) {
        let sql = format!("SELECT id, code, body, size FROM {table} ORDER BY id");
        let (source, mirror) = (rows(&self.source(), &sql), rows(&self.mirror(), &sql));
        assert!(!source.is_empty(), "nothing was compared");
        assert_eq!(source, mirror);
    }
}

/// On a port that is free.
pub const LISTEN: &str = "listen = \"127.0.0.1:0\"\n";

/// A pipeline of this name for the table of this name.
pub fn pipeline(name: &str) -> String {
    format!(
        "[source.{name}]\nurl = \"sqlite:source.db\"\n\
         [sink.{name}]\nkind = \"sqlite\"\nurl = \"sqlite:mirror.db\"\ntable = \"{name}\"\n\
         [pipeline.{name}]\nsource = \"{name}\"\ntable = \"{name}\"\nkey = \"id\"\nsink = \"{name}\"\n"
    )
}

pub fn rows(connection: &Connection, sql: &str) -> Vec<Vec<Value>> {
    let mut statement = connection.prepare(sql).expect("prepared");
    let width = statement.column_count();
    let rows = statement.query_map([], |row| (0..width).map(|at| row.get(at)).collect());
    rows.expect("asked").collect::<Result<_, _>>().expect("read")
}

pub fn connect(path: &Path) -> Connection {
    let connection = Connection::open(path).expect("opened");
    connection.busy_timeout(Duration::from_secs(60)).expect("set");
    connection
}

/// Asks until it is so.
pub fn until(mut so: impl FnMut() -> bool) {
    for _ in 0..ASKED_MAX {
        if so() {
            return;
        }
        std::thread::sleep(PAUSE);
    }
    panic!("it did not become so");
}

pub fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}
