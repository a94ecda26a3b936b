//! `reconcile`: holds both sides against each other and repairs; by whichever worker holds the
//! lease, or right here if nobody does.

use std::sync::Arc;
use std::time::Duration;

use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::config::PipelineConfig;
use truekeep::entropy::RandomEntropy;
use truekeep::reconcile::{Standing, Wish};
use truekeep::status::LedgerPorts;
use truekeep::wiring::Purpose;
use truekeep::worker::Workshop;
use truekeep_core::code::Code;
use truekeep_core::reconcile::Terms;
use truekeep_engine::{Ending, Silent, Stopper};

use super::diff::preview;
use crate::answers::Answers;
use crate::args::Reconcile;
use crate::run::stop_asked;
use crate::session::Session;

/// How often a run that another worker does is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub async fn reconcile(session: &Session, wanted: &Reconcile) -> Result<Exit, Trouble> {
    if wanted.dry_run {
        return preview(session, &wanted.selection, wanted.deep).await;
    }
    let ledger = session.ledger(Purpose::Work).await?;
    let reconciled = async |pipeline: &PipelineConfig| {
        let (confirmed, deep, owns) = (wanted.confirm, wanted.deep, pipeline.owns);
        let terms = Terms { confirmed, deep, owns, ..Terms::default() };
        one(session, &ledger, pipeline, &terms).await
    };
    let answers = session.each(&wanted.selection, reconciled).await?;
    Ok(told(session, &answers))
}

/// Shows how the runs ended.
pub(super) fn told(session: &Session, answers: &Answers<Standing>) -> Exit {
    let exit = answers.pipelines.iter().map(exit_of).find(|exit| *exit != Exit::Done);
    session.out.show(answers, |done| done.pipelines.iter().map(words).collect());
    answers.end(session, exit.unwrap_or(Exit::Done))
}

/// Has one run do what these terms ask for, by whichever worker holds the lease, or right here.
pub(super) async fn one(
    session: &Session,
    ledger: &LedgerPorts,
    pipeline: &PipelineConfig,
    terms: &Terms,
) -> Result<Standing, Trouble> {
    let store = ledger.ledger.as_ref();
    let make = || Wish::make(store, &RandomEntropy, &pipeline.name, terms.clone());
    let mut wish = make().await?;
    let mut told = String::new();
    loop {
        let standing = wish.standing(store, &RandomEntropy).await?;
        if !standing.active && standing.serves(terms) {
            return Ok(standing);
        }
        if !standing.active {
            wish = make().await?;
            continue;
        }
        let observer = Arc::new(Silent);
        let workshop = Workshop { config: &session.config, ledger, observer };
        let (stopper, stop) = Stopper::new();
        let signals = tokio::spawn(async move {
            stop_asked().await;
            stopper.stop();
        });
        let (report, refused) = workshop.run_once(&[pipeline], &stop).await;
        signals.abort();
        if let Some((_, error)) = refused.into_iter().next() {
            return Err(error.into());
        }
        match report.into_iter().next().map(|(_, ending)| ending) {
            Some(Ending::Held(holder, until)) => {
                let name = &pipeline.name;
                let phase = standing.phase;
                let note =
                    format!("{name}: {phase}, done by {holder}, who has the lease until {until}");
                if note != told {
                    session.out.note(&note);
                    told = note;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
            // It is there, and goes on when the pipeline does.
            Some(Ending::Halted(code, _)) if code == Code::PIPELINE_PAUSED => {
                return Ok(Standing { code: Some(code), ..standing });
            }
            Some(Ending::Halted(code, _)) => {
                return Ok(Standing { code: Some(code), active: false, ..standing });
            }
            // The lease was given back; the run stays, for whoever works next.
            Some(Ending::Stopped) => {
                return wish.standing(store, &RandomEntropy).await.map_err(Into::into);
            }
            // It goes on when trouble has passed.
            Some(Ending::Drained) | None => tokio::time::sleep(LOOK_EVERY).await,
        }
    }
}

fn exit_of(standing: &Standing) -> Exit {
    match &standing.code {
        None if standing.active => Exit::Incomplete,
        None => Exit::Done,
        Some(_) if standing.active => Exit::Incomplete,
        Some(code) if *code == Code::CANCELLED => Exit::Incomplete,
        Some(code) if *code == Code::GUARD_REFUSED => Exit::GuardRefused,
        Some(_) => Exit::Halted,
    }
}

fn words(standing: &Standing) -> String {
    let Standing { pipeline, code, report, terms, .. } = standing;
    let end = match code {
        None if standing.active => format!("under way, {}", standing.phase),
        None if terms.rebuild.is_some() => "rebuilt".to_owned(),
        None => "reconciled".to_owned(),
        Some(code) if standing.active => format!("waits, {code}"),
        Some(code) => format!("stopped, {code}"),
    };
    let hint = code.as_ref().map_or_else(String::new, |code| {
        let remedy = truekeep::trouble::remedy(code);
        format!("  hint: {remedy} (`truekeep explain {code}`)\n")
    });
    format!("{pipeline}: {end}: {report}\n{hint}")
}
