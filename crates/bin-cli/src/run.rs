//! `run`: follows the sources and keeps the sinks true, until it is stopped or nothing is due.

mod events;

use std::sync::Arc;

use serde::Serialize;
use truekeep::Trouble;
use truekeep::certificates::{Turned, watch};
use truekeep::codes::Exit;
use truekeep::config::PipelineConfig;
use truekeep::coverage::{Coverage, Freshness, Wanted, judge};
use truekeep::status::{Known, LedgerPorts};
use truekeep::wiring::Purpose;
use truekeep::worker::Workshop;
use truekeep_core::ScopeId;
use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;
use truekeep_engine::{Ending, Report, Stopper};

use crate::args::Run;
use crate::commands::coverage::words;
use crate::session::Session;
use events::Events;

#[derive(Serialize)]
#[serde(tag = "event", rename = "ended")]
struct Ended {
    pipelines: Vec<PipelineEnded>,
    coverage: Coverage,
}

#[derive(Serialize)]
struct PipelineEnded {
    pipeline: String,
    /// `stopped`, `drained`, `held`, `halted` or `refused`.
    ending: &'static str,
    code: Option<String>,
    text: Option<String>,
    #[serde(skip)]
    exit: Exit,
}

pub async fn run(session: &Session, wanted: &Run) -> Result<Exit, Trouble> {
    let ledger = session.ledger(Purpose::Work).await?;
    let pipelines = session.selected(&wanted.selection)?;
    session.out.note(&session.config.render_warnings(session.out.colour()));
    let events = Arc::new(Events::new(session.out, session.config.clone()));
    let observer = Arc::clone(&events) as Arc<dyn truekeep_engine::Observer>;
    let workshop = Workshop { config: &session.config, ledger: &ledger, observer };
    let (stopper, stop) = Stopper::new();
    let signals = tokio::spawn(async move {
        stop_asked().await;
        stopper.stop();
        // A second one is not waited for: whatever was under way is repeated by the next worker.
        stop_asked().await;
        std::process::exit(i32::from(Exit::Unexpected.number()));
    });
    let exit = if wanted.once {
        let (report, refused) = workshop.run_once(&pipelines, &stop).await;
        events.end();
        let refused = refused.into_iter().map(|(pipeline, error)| PipelineEnded {
            pipeline: pipeline.name.to_string(),
            ending: "refused",
            code: Some(error.code.to_string()),
            exit: Exit::of(error.class, &error.code),
            text: Some(session.config.redact(&error.chain())),
        });
        let ended = endings(report).chain(refused).collect();
        answer(session, &ledger, &pipelines, ended).await
    } else {
        let certified = |scope: &ScopeId, turned: &Turned| events.certified(scope, turned);
        tokio::select! {
            () = workshop.run(&pipelines, &stop) => {}
            never = watch(&ledger, &pipelines, certified) => match never {},
        }
        events.end();
        Ok(Exit::Done)
    };
    signals.abort();
    exit
}

fn endings(report: Report) -> impl Iterator<Item = PipelineEnded> {
    report.into_iter().map(|(scope, ending)| {
        let ended = |ending, code, text, exit| PipelineEnded {
            pipeline: scope.to_string(),
            ending,
            code,
            text,
            exit,
        };
        match ending {
            Ending::Stopped => ended("stopped", None, None, Exit::Done),
            Ending::Drained => ended("drained", None, None, Exit::Done),
            Ending::Held(holder, until) => {
                let text = format!("{holder} has the lease until {until}");
                ended("held", Some("LEASE_HELD".to_owned()), Some(text), Exit::LeaseHeld)
            }
            Ending::Halted(code, text) => {
                let exit = Exit::of(FailureClass::Halted, &code);
                ended("halted", Some(code.to_string()), Some(text), exit)
            }
        }
    })
}

/// Says how it ended and what is complete now: the first that did not end well decides the exit.
async fn answer(
    session: &Session,
    ledger: &LedgerPorts,
    pipelines: &[&PipelineConfig],
    ended: Vec<PipelineEnded>,
) -> Result<Exit, Trouble> {
    let mut covered = Vec::new();
    for pipeline in pipelines {
        let known = Known::read(ledger, &pipeline.name).await?;
        covered.push(judge(&known, &Wanted::default(), &Freshness::AsOfCertificate));
    }
    let coverage = Coverage::of(covered);
    let failed = ended.iter().map(|ended| ended.exit).find(|exit| *exit != Exit::Done);
    let exit = match failed {
        Some(exit) => exit,
        None if coverage.complete => Exit::Done,
        None => Exit::Incomplete,
    };
    let ended = Ended { pipelines: ended, coverage };
    if session.out.is_json() {
        // The last of the lines that the events were.
        session.out.event(&ended);
        return Ok(exit);
    }
    session.out.show(&ended, |ended| {
        let line = |ended: &PipelineEnded| {
            let code = ended.code.as_deref()?;
            let known = Code::from_outside(code);
            let meaning = known.entry().map_or("", |entry| entry.meaning);
            let text = ended.text.as_deref().filter(|text| !text.is_empty()).unwrap_or(meaning);
            let hint = truekeep::trouble::remedy(&known);
            let name = &ended.pipeline;
            Some(format!("{name}: {code} {text}\n  hint: {hint} (`truekeep explain {code}`)\n"))
        };
        let lines: String = ended.pipelines.iter().filter_map(line).collect();
        lines + &words(&ended.coverage)
    });
    Ok(exit)
}

/// Returns once the process is asked to end.
pub async fn stop_asked() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}
