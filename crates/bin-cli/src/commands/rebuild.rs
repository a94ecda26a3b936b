//! `rebuild`: puts the configured rules in force anew and has everything delivered again under them, beside
//! what changes meanwhile; by whichever worker holds the lease, or right here if nobody does.

use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::config::PipelineConfig;
use truekeep::wiring::{Purpose, open_source};
use truekeep_core::reconcile::Terms;

use super::apply::put_in_force;
use super::reconcile::{one, told};
use crate::args::Rebuild;
use crate::session::Session;

pub async fn rebuild(session: &Session, wanted: &Rebuild) -> Result<Exit, Trouble> {
    let ledger = session.ledger(Purpose::Work).await?;
    let rebuilt = async |pipeline: &PipelineConfig| {
        let source = open_source(&session.config, pipeline).await?;
        let record = ledger.ledger.pipeline(&pipeline.name).await?;
        let record =
            put_in_force(session, &ledger.ledger, pipeline, &source, record.as_ref()).await?;
        let (rebuild, owns) = (Some(record.rules.number), pipeline.owns);
        session.out.note(&format!("{}: rules {} are in force", pipeline.name, record.rules.number));
        let terms = Terms { confirmed: wanted.confirm, owns, rebuild, ..Terms::default() };
        one(session, &ledger, pipeline, &terms).await
    };
    let answers = session.each(&wanted.selection, rebuilt).await?;
    Ok(told(session, &answers))
}
