//! `coverage`: whether sinks are complete. Needs the ledger; the source only where a certificate is too old.

use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::config::PipelineConfig;
use truekeep::coverage::{self, Coverage, Covered, Freshness, Wanted};
use truekeep::status::{Known, LedgerPorts};
use truekeep::wiring::{Purpose, open_source};
use truekeep_core::certificate::State;

use crate::args;
use crate::output::{dash, table};
use crate::session::Session;

pub async fn coverage(session: &Session, wanted: &args::Coverage) -> Result<Exit, Trouble> {
    let ledger = session.ledger(Purpose::Read).await?;
    let asked = Wanted { token: wanted.token.clone(), age_max: wanted.max_age };
    let mut answers = Vec::new();
    for pipeline in session.selected(&wanted.selection)? {
        answers.push(answer(session, &ledger, pipeline, &asked).await?);
    }
    let coverage = Coverage::of(answers);
    session.out.show(&coverage, words);
    Ok(if coverage.complete { Exit::Done } else { Exit::Incomplete })
}

async fn answer(
    session: &Session,
    ledger: &LedgerPorts,
    pipeline: &PipelineConfig,
    asked: &Wanted,
) -> Result<(Covered, Option<State>), Trouble> {
    let known = Known::read(ledger, &pipeline.name).await?;
    let mut freshness = Freshness::AsOfCertificate;
    let mut unreachable = None;
    if coverage::needs_source(&known, asked) {
        let looked = async {
            let source = open_source(&session.config, pipeline).await?;
            coverage::freshness(&known, source.feed.as_ref()).await
        };
        match looked.await {
            Ok(found) => freshness = found,
            Err(error) => unreachable = Some(error.chain()),
        }
    }
    let (mut covered, state) = coverage::judge(&known, asked, &freshness);
    if let Some(error) = unreachable {
        covered.reason += &format!(", and the source cannot be asked: {error}");
        covered.reason = session.config.redact(&covered.reason);
    }
    Ok((covered, state))
}

/// A table of the answers.
pub fn words(coverage: &Coverage) -> String {
    let rows: Vec<_> = coverage
        .pipelines
        .iter()
        .map(|covered| {
            [
                covered.pipeline.clone(),
                if covered.complete { "yes" } else { "no" }.to_owned(),
                format!("{}{}", covered.state, if covered.paused { ", paused" } else { "" }),
                dash(covered.moment.as_ref()),
                dash(covered.rules),
                dash(covered.age_ms.map(|ms| format!("{} s", ms / 1_000))),
                covered.reason.clone(),
            ]
        })
        .collect();
    table(["pipeline", "complete", "state", "moment", "rules", "age", "reason"], &rows)
}
