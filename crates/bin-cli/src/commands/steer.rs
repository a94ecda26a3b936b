//! `pause` and `resume`: needs the ledger only.

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::config::PipelineConfig;
use truekeep::operator::{self, Decided};
use truekeep::status::{Known, PipelineStatus};
use truekeep::wiring::Purpose;
use truekeep_core::ports::{PipelineState, Steering};

use crate::args::{Selection, Steer};
use crate::session::Session;

#[derive(Serialize)]
struct PipelineSteered {
    pipeline: String,
    /// `paused` or `working`.
    standing: &'static str,
    /// Whether it was otherwise before.
    changed: bool,
    /// Who still has the lease: it is given back with the end of a turn.
    holder: Option<String>,
}

pub async fn steer(session: &Session, wanted: &Steer, to: Steering) -> Result<Exit, Trouble> {
    let ledger = session.ledger(Purpose::Read).await?;
    // Without names clap has seen to it that all are meant.
    let selection = Selection { pipelines: wanted.pipelines.clone() };
    let by = operator::by(wanted.reason.reason.as_deref());
    let steered = async |pipeline: &PipelineConfig| {
        let name = &pipeline.name;
        let Decided { record, changed } = operator::steer(&ledger, name, to, by.clone()).await?;
        let known = Known::read(&ledger, name).await?;
        let status = PipelineStatus::of(&known, session.config.worker.lease);
        Ok(PipelineSteered {
            pipeline: name.to_string(),
            standing: if record.state == PipelineState::Paused { "paused" } else { "working" },
            changed,
            holder: status.holder.map(|holder| holder.holder),
        })
    };
    let answers = session.each(&selection, steered).await?;
    session.out.show(&answers, |done| done.pipelines.iter().map(words).collect());
    Ok(answers.end(session, Exit::Done))
}

fn words(steered: &PipelineSteered) -> String {
    let PipelineSteered { pipeline, standing, changed, holder } = steered;
    let already = if *changed { "" } else { " already" };
    let text = match (*standing, holder) {
        ("paused", Some(holder)) => format!(", and {holder} ends its turn"),
        ("paused", None) => String::new(),
        (_, Some(holder)) => format!(" by {holder}"),
        (_, None) => ", once a worker runs".to_owned(),
    };
    let verb = if *standing == "paused" { "is paused" } else { "is worked on" };
    format!("{pipeline} {verb}{already}{text}\n")
}
