//! The log: to standard error, without what the configuration hides.

use std::io::{self, Write};
use std::sync::Arc;

use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use truekeep::{Config, Trouble};

use crate::arguments::LogForm;

/// What is logged unless somebody says otherwise.
const LEVEL: &str = "info";

/// Begins to log. `level` is what the command line says; else RUST_LOG decides.
///
/// # Errors
/// A level that is none.
pub fn begin(config: &Arc<Config>, form: LogForm, level: Option<&str>) -> Result<(), Trouble> {
    let environment = std::env::var("RUST_LOG").ok().filter(|level| !level.is_empty());
    let level = level.or(environment.as_deref()).unwrap_or(LEVEL);
    let targets: Targets = level.parse().map_err(|error| {
        let hint = "write a level (error, warn, info, debug, trace, off), \
            or levels by target as in `info,truekeep_engine=debug`";
        Trouble::Usage(format!("`{level}` is no log level: {error}"), hint.to_owned())
    })?;
    let layer = fmt::layer()
        .with_ansi(false)
        // A log that cannot be written is no reason to end.
        .log_internal_errors(false)
        .with_writer(Redacted(Arc::clone(config)));
    let layer = match form {
        LogForm::Human => layer.with_filter(targets).boxed(),
        LogForm::Json => layer.json().flatten_event(true).with_filter(targets).boxed(),
    };
    tracing_subscriber::registry().with(layer).init();
    Ok(())
}

/// Takes out of each line what came from the environment and from secrets' files.
struct Redacted(Arc<Config>);

impl<'w> MakeWriter<'w> for Redacted {
    type Writer = Line<'w>;

    fn make_writer(&'w self) -> Line<'w> {
        Line(&self.0)
    }
}

/// One line: it is written in one piece.
struct Line<'w>(&'w Config);

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = self.0.redact(&String::from_utf8_lossy(bytes));
        io::stderr().lock().write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}
