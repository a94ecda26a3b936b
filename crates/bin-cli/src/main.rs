//! The command line: reads arguments, asks the facade, prints. It decides nothing.

mod answers;
mod args;
mod commands;
mod output;
mod progress;
mod run;
mod session;

use std::process::ExitCode;

use args::{Arguments, Command, Format};
use clap::Parser;
use output::Output;
use session::Session;
use truekeep::codes::Exit;
use truekeep::trouble::TroubleReport;
use truekeep::{Config, Trouble};
use truekeep_core::ports::Steering;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let out = Output::new(arguments.format);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let exit = match runtime {
        Ok(runtime) => runtime.block_on(perform(&arguments, out)),
        Err(error) => {
            let error = Trouble::File("start the runtime".to_owned(), error);
            Err((error.report(), None))
        }
    };
    let exit = exit.unwrap_or_else(|(report, shown)| {
        out.failed(&report, shown.as_deref());
        report.exit
    });
    ExitCode::from(exit)
}

/// A failure as it is printed: as data, and in its own form if it has one.
type Failed = (TroubleReport, Option<String>);

async fn perform(arguments: &Arguments, out: Output) -> Result<u8, Failed> {
    let done = |exit: Exit| exit.number();
    match &arguments.command {
        Command::Init(init) => {
            let made = commands::init::init(init, &arguments.config, out).await;
            return made.map(done).map_err(|trouble| failed(&trouble, out, None));
        }
        Command::Completions(wanted) => {
            let printed = commands::completions::completions(wanted);
            return printed.map(done).map_err(|trouble| failed(&trouble, out, None));
        }
        Command::Explain(explain) => {
            if let Some(exit) = commands::explain::code(explain, out) {
                return Ok(done(exit));
            }
        }
        _ => {}
    }
    let config = Config::load(&arguments.config)
        .map_err(|invalid| failed(&Trouble::Config(invalid), out, None))?;
    let session = Session { config, out };
    let answer = command(&arguments.command, &session).await;
    answer.map(done).map_err(|trouble| failed(&trouble, out, Some(&session.config)))
}

fn failed(trouble: &Trouble, out: Output, config: Option<&Config>) -> Failed {
    let mut report = trouble.report();
    if let Some(config) = config {
        report.message = config.redact(&report.message);
    }
    let shown = match trouble {
        Trouble::Config(invalid) if invalid.problems().iter().any(|p| p.span.is_some()) => {
            Some(invalid.render(out.colour()))
        }
        Trouble::Config(_)
        | Trouble::Port(_)
        | Trouble::Usage(..)
        | Trouble::Guard(..)
        | Trouble::File(..) => None,
    };
    (report, shown)
}

async fn command(command: &Command, session: &Session) -> Result<Exit, Trouble> {
    match command {
        // Handled before there is a configuration.
        Command::Init(_) | Command::Completions(_) => Ok(Exit::Done),
        Command::Doctor => commands::doctor::doctor(session).await,
        Command::Check(check) => commands::check::check(session, check).await,
        Command::Apply(apply) => commands::apply::apply(session, apply).await,
        Command::Migrate => commands::migrate::migrate(session).await,
        Command::Capture(capture) => commands::capture::capture(session, capture).await,
        Command::Run(wanted) => run::run(session, wanted).await,
        Command::Status(status) => commands::status::status(session, status).await,
        Command::Explain(explain) => commands::explain::pipeline(session, explain).await,
        Command::Diff(diff) => commands::diff::diff(session, diff).await,
        Command::Rebuild(wanted) => commands::rebuild::rebuild(session, wanted).await,
        Command::Reconcile(wanted) => commands::reconcile::reconcile(session, wanted).await,
        Command::Search(search) => commands::search::search(session, search),
        Command::Parked(parked) => commands::parked::parked(session, parked).await,
        Command::Pause(wanted) => commands::steer::steer(session, wanted, Steering::Pause).await,
        Command::Resume(wanted) => commands::steer::steer(session, wanted, Steering::Resume).await,
        Command::Cancel(wanted) => commands::cancel::cancel(session, wanted).await,
        Command::Remove(wanted) => commands::remove::remove(session, wanted).await,
        Command::Coverage(coverage) => commands::coverage::coverage(session, coverage).await,
        Command::History(wanted) => commands::history::history(session, wanted).await,
        Command::Wait(wait) => commands::wait::wait(session, wait).await,
    }
}

impl Format {
    fn is_json(self) -> bool {
        matches!(self, Self::Json)
    }
}
