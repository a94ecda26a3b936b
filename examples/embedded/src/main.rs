//! The engine inside an application: its own database, and a mirror that is kept true beside it.

use std::{error::Error, io::Write, sync::Arc, time::Duration};

use truekeep::coverage::{Freshness, Wanted, judge};
use truekeep::wiring::{Purpose, open_ledger, open_source};
use truekeep::{Config, status::Known, worker::Workshop};
use truekeep_core::{Moment, Version};
use truekeep_engine::{Silent, Stopper};

const CONFIG: &str = r#"
    source.app = { url = "sqlite:app.db" }
    sink.mirror = { kind = "sqlite", url = "sqlite:mirror.db", table = "notes" }
    pipeline.notes = { source = "app", table = "notes", key = "id", sink = "mirror" }
"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // The application's own database.
    let folder = tempfile::tempdir()?;
    let mut app = rusqlite::Connection::open(folder.path().join("app.db"))?;
    app.execute_batch("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")?;
    // Paths of the configuration are seen from the folder of its file, which need not exist.
    let path = folder.path().join("truekeep.toml");
    let config = Arc::new(Config::parse(&path, CONFIG, &|_| None)?);
    let ledger = open_ledger(&config, Purpose::Work).await?;
    // Triggers that record every change from now on, and the rows that are there already.
    let notes = config.pipeline("notes").ok_or("there is no pipeline")?;
    let source = open_source(&config, notes).await?;
    source.capture.install().await?;
    while !source.capture.fill().await?.done {}
    // The worker, beside whatever else the application does.
    let (stopper, stop) = Stopper::new();
    let (config, memory, observer) = (Arc::clone(&config), ledger.clone(), Arc::new(Silent));
    let worker = tokio::spawn(async move {
        let pipelines: Vec<_> = config.pipelines.iter().collect();
        Workshop { config: &config, ledger: &memory, observer }.run(&pipelines, &stop).await;
    });
    // A write, and in its transaction the token that says how new a reader's answer has to be.
    let write = app.transaction()?;
    write.execute("INSERT INTO notes (text) VALUES ('hello'), ('world')", [])?;
    let token = write.query_row("SELECT newest FROM truekeep_counter_notes", [], |r| r.get(0))?;
    write.commit()?;
    // Read your writes: wait until the certificate covers the token.
    let wanted = Wanted { token: Some(Moment::at(Version::new(token))), age_max: None };
    let covered = loop {
        let known = Known::read(&ledger, &notes.name).await?;
        match judge(&known, &wanted, &Freshness::AsOfCertificate) {
            (covered, _) if covered.complete => break covered,
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    writeln!(std::io::stdout(), "token {token} is covered: {covered:?}")?;
    // The lease is handed back before the application ends.
    stopper.stop();
    Ok(worker.await?)
}
