//! `check`: opens everything and says what fits. Makes nothing.

use serde::Serialize;
use truekeep::announce::Standing;
use truekeep::codes::Exit;
use truekeep::config::{LedgerConfig, PipelineConfig, PlacedProblem};
use truekeep::doctor::unwritable;
use truekeep::status::{Known, LedgerPorts};
use truekeep::trouble::Trouble;
use truekeep::wiring::{Purpose, SinkCheck, SourcePorts, check_sink, open_source};
use truekeep_core::code::Code;
use truekeep_core::ports::CaptureState;

use crate::args::{Check, Selection};
use crate::commands::document;
use crate::commands::finding::Finding;
use crate::session::Session;

#[derive(Serialize)]
struct Checked {
    ok: bool,
    warnings: Vec<PlacedProblem>,
    findings: Vec<Finding>,
}

pub async fn check(session: &Session, wanted: &Check) -> Result<Exit, Trouble> {
    if let Some(key) = &wanted.key {
        return document::document(session, &wanted.selection, key).await;
    }
    let pipelines = session.selected(&wanted.selection)?;
    let unwritable = unwritable(&session.config, &pipelines).await.into_iter();
    let mut findings: Vec<_> = unwritable.map(|sign| Finding::of(session, sign)).collect();
    findings.extend(examined(session, &wanted.selection).await?);
    let exit = exit(&findings);
    let warnings = session.config.warnings();
    session.out.note(&session.config.render_warnings(session.out.colour()));
    let checked = Checked { ok: exit == Exit::Done, warnings, findings };
    session.out.show(&checked, |checked| checked.findings.iter().map(Finding::words).collect());
    Ok(exit)
}

/// The exit code of the first finding that is wrong.
pub fn exit(findings: &[Finding]) -> Exit {
    findings.iter().find(|finding| !finding.ok).map_or(Exit::Done, |first| first.exit)
}

/// The ledger, and each pipeline's parts.
pub async fn examined(session: &Session, selection: &Selection) -> Result<Vec<Finding>, Trouble> {
    let mut findings = Vec::new();
    let ledger = match session.ledger(Purpose::Read).await {
        Ok(ledger) => {
            let there = match &session.config.ledger {
                LedgerConfig::Memory => "is in memory",
                LedgerConfig::Sqlite(_) | LedgerConfig::Postgres(_) if ledger.stands_in => {
                    "is made by the first start"
                }
                LedgerConfig::Sqlite(_) | LedgerConfig::Postgres(_) => "can be read",
            };
            findings.push(Finding::fits(None, "ledger", there.to_owned()));
            Some(ledger)
        }
        Err(Trouble::Port(error)) => {
            findings.push(Finding::failed(session, None, "ledger", &error));
            None
        }
        Err(other) => return Err(other),
    };
    for pipeline in session.selected(selection)? {
        pipeline_checked(session, ledger.as_ref(), pipeline, &mut findings).await;
    }
    Ok(findings)
}

async fn pipeline_checked(
    session: &Session,
    ledger: Option<&LedgerPorts>,
    pipeline: &PipelineConfig,
    findings: &mut Vec<Finding>,
) {
    let name = Some(pipeline.name.as_str());
    let source = match open_source(&session.config, pipeline).await {
        Ok(source) => source,
        Err(error) => return findings.push(Finding::failed(session, name, "source", &error)),
    };
    let columns = source.columns.len();
    let shape = format!("`{}` fits the rules, {columns} values in a document", pipeline.table);
    findings.push(Finding::fits(name, "source", shape));
    findings.extend(source.advice.iter().map(|advice| Finding::slow(name, advice)));
    findings.push(capture(session, name, &source).await);
    if let Some(ledger) = ledger {
        findings.push(match Known::read(ledger, &pipeline.name).await {
            Ok(known) if known.closed() == Some(Code::PIPELINE_REMOVED) => removed(name, &known),
            Ok(known) => rules(name, &Standing::of(&source.rules, known.record.as_ref())),
            Err(error) => Finding::failed(session, name, "rules", &error),
        });
    }
    findings.push(match check_sink(&session.config, pipeline, &source).await {
        Ok(SinkCheck::Fits) => Finding::fits(name, "sink", "is there and fits".to_owned()),
        Ok(SinkCheck::ToBeMade) => {
            Finding::fits(name, "sink", "is made by the first delivery".to_owned())
        }
        Err(error) => Finding::failed(session, name, "sink", &error),
    });
}

async fn capture(session: &Session, name: Option<&str>, source: &SourcePorts) -> Finding {
    let report = match source.capture.verify().await {
        Ok(report) => report,
        Err(error) => return Finding::failed(session, name, "capture", &error),
    };
    let code = match report.state {
        CaptureState::Trusted(_) => {
            return Finding::fits(name, "capture", "records every change".to_owned());
        }
        CaptureState::Filling => Code::CAPTURE_FILLING,
        CaptureState::Broken(code) => code,
    };
    let text = match report.differences.as_slice() {
        // What is not there at all lacks each of its parts.
        _ if code == Code::CAPTURE_MISSING => "is not installed".to_owned(),
        [] => "does not record every change".to_owned(),
        some => some.join("; "),
    };
    Finding::wrong(name, "capture", text, &code, Exit::Incomplete)
}

fn removed(name: Option<&str>, known: &Known) -> Finding {
    let text = match known.record {
        Some(_) => "are no longer in force: the pipeline is being removed",
        None => "are not announced by a start: a pipeline of this name was removed",
    };
    Finding::wrong(name, "rules", text.to_owned(), &Code::PIPELINE_REMOVED, Exit::Config)
}

fn rules(name: Option<&str>, standing: &Standing) -> Finding {
    match standing {
        Standing::New => {
            Finding::fits(name, "rules", "are announced by the first start".to_owned())
        }
        Standing::InForce { rules } => {
            Finding::fits(name, "rules", format!("are in force as rules {rules}"))
        }
        Standing::Changed { rules, .. } => {
            let text = format!("differ from rules {rules}, which are in force");
            Finding::wrong(name, "rules", text, &Code::RULES_CHANGED, Exit::Config)
        }
    }
}
