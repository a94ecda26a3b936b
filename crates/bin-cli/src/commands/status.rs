//! `status`: each pipeline's certificate and who works on it. Needs the ledger only.

use std::time::Duration;

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::reconcile::Standing;
use truekeep::status::{Known, LedgerPorts, PipelineStatus};
use truekeep::wiring::Purpose;

use crate::args::{Selection, Status};
use crate::output::{dash, table};
use crate::session::Session;

/// How often `--watch` looks.
const WATCH_EVERY: Duration = Duration::from_secs(1);

#[derive(PartialEq, Serialize)]
struct Statuses {
    pipelines: Vec<PipelineStatus>,
    /// Pipelines that the ledger knows and the configuration does not.
    unconfigured: Vec<String>,
}

pub async fn status(session: &Session, wanted: &Status) -> Result<Exit, Trouble> {
    let ledger = session.ledger(Purpose::Read).await?;
    let shown = read(session, &ledger, &wanted.selection).await?;
    session.out.show(&shown, words);
    if wanted.watch {
        watch(session, &wanted.selection, ledger, shown).await
    } else {
        Ok(Exit::Done)
    }
}

/// Prints again whenever something has changed, until it is interrupted.
async fn watch(
    session: &Session,
    selection: &Selection,
    mut ledger: LedgerPorts,
    mut shown: Statuses,
) -> Result<Exit, Trouble> {
    loop {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => return Ok(Exit::Done),
            () = tokio::time::sleep(WATCH_EVERY) => {}
        }
        // A ledger that was not there may have been made.
        if shown.pipelines.iter().all(|status| status.state == "unknown") {
            ledger = session.ledger(Purpose::Read).await?;
        }
        let next = read(session, &ledger, selection).await?;
        if next != shown {
            shown = next;
            session.out.show(&shown, |shown| format!("\n{}", words(shown)));
        }
    }
}

async fn read(
    session: &Session,
    ledger: &LedgerPorts,
    selection: &Selection,
) -> Result<Statuses, Trouble> {
    let mut pipelines = Vec::new();
    for pipeline in session.selected(selection)? {
        let known = Known::read(ledger, &pipeline.name).await?;
        pipelines.push(PipelineStatus::of(&known, session.config.worker.lease));
    }
    let mut unconfigured = Vec::new();
    if selection.pipelines.is_empty() {
        let recorded = ledger.archive.pipelines().await?.into_iter();
        let names = recorded.map(|record| record.name.to_string());
        unconfigured.extend(names.filter(|name| session.config.pipeline(name).is_none()));
    }
    Ok(Statuses { pipelines, unconfigured })
}

fn words(shown: &Statuses) -> String {
    let head = ["pipeline", "state", "moment", "cursor", "parked", "waiting", "phase", "held by"];
    let rows: Vec<_> = shown
        .pipelines
        .iter()
        .map(|status| {
            let holder = status.holder.as_ref();
            [
                status.pipeline.clone(),
                status.state.to_owned(),
                dash(status.moment.as_ref()),
                status.cursor.clone(),
                status.parked.to_string(),
                status.unsettled.to_string(),
                match status.standing {
                    "working" | "unknown" => dash(status.phase),
                    other => other.to_owned(),
                },
                dash(holder.map(|holder| format!("{} until {}", holder.holder, holder.until))),
            ]
        })
        .collect();
    let mut text = table(head, &rows);
    for status in &shown.pipelines {
        if let Some(code) = &status.code {
            text += &format!("{}: {code} (`truekeep explain {code}`)\n", status.pipeline);
        }
        if let Some(Standing { procedure, phase, restarts, report, .. }) = &status.reconcile {
            let anew = match restarts {
                0 => String::new(),
                times => format!(" (begun anew {times} times, as the rules changed)"),
            };
            text += &format!("{}: {procedure} {phase}{anew}: {report}\n", status.pipeline);
        }
        if let Some(health) = &status.health {
            let again = dash(health.due_at.as_ref());
            let (code, tries) = (&health.code, health.attempts);
            text += &format!(
                "{}: {code}, failures {tries}, again at {again}: {}\n",
                status.pipeline,
                crate::output::plain(&health.text)
            );
        }
    }
    for name in &shown.unconfigured {
        text += &format!("{name}: in the ledger, but not in the configuration\n");
    }
    text
}
