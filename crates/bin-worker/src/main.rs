//! The worker as a service: the engine over every pipeline of a configuration, seen over HTTP.

mod arguments;
mod board;
mod http;
mod log;
mod metrics;
mod readiness;
mod service;
mod signals;
mod status;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use truekeep::codes::Exit;
use truekeep::trouble::TroubleReport;
use truekeep::{Config, Trouble};

use crate::arguments::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let config = match Config::load(&arguments.config) {
        Ok(config) => Arc::new(config),
        Err(invalid) => return failed(&Trouble::Config(invalid), None),
    };
    match start(&arguments, &config) {
        Ok(exit) => ExitCode::from(exit.number()),
        Err(trouble) => failed(&trouble, Some(&config)),
    }
}

fn start(arguments: &Arguments, config: &Arc<Config>) -> Result<Exit, Trouble> {
    log::begin(config, arguments.log, arguments.log_level.as_deref())?;
    for warning in config.warnings() {
        tracing::warn!(hint = warning.remedy, "{}", warning.message);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Trouble::File("start the runtime".to_owned(), error))?;
    runtime.block_on(service::run(Arc::clone(config)))
}

/// Prints why the service did not start, as the command line does.
fn failed(trouble: &Trouble, config: Option<&Config>) -> ExitCode {
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let TroubleReport { message, hint, code, exit, .. } = trouble.report();
    let text = if let Trouble::Config(invalid) = trouble {
        invalid.render(colour)
    } else {
        format!("error: {message}\nhint: {hint} (`truekeep explain {code}`)")
    };
    let text = config.map_or_else(|| text.clone(), |config| config.redact(&text));
    // Whoever started it may have closed the stream.
    let _ = writeln!(std::io::stderr().lock(), "{text}");
    ExitCode::from(exit)
}
