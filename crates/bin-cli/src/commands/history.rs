//! `history`: the newest events of each pipeline, newest first.

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::wiring::Purpose;
use truekeep_core::{PipelineName, ScopeId};

use crate::args::{History, Selection};
use crate::session::Session;

#[derive(Serialize)]
struct Told {
    events: Vec<ToldEvent>,
}

#[derive(Serialize)]
struct ToldEvent {
    pipeline: String,
    at: String,
    code: String,
    text: String,
}

pub async fn history(session: &Session, wanted: &History) -> Result<Exit, Trouble> {
    let ledger = session.ledger(Purpose::Read).await?;
    let mut events = Vec::new();
    for name in names(session, &wanted.selection) {
        let found = match PipelineName::parse(&name) {
            Ok(name) => ledger.archive.history(&ScopeId::whole(name), wanted.limit).await?,
            Err(_) => Vec::new(),
        };
        if found.is_empty() {
            // What happened to a pipeline is told when it is configured no more.
            session.named(&name)?;
        }
        for (at, event) in found {
            events.push(ToldEvent {
                pipeline: name.clone(),
                at: at.to_string(),
                code: event.code.to_string(),
                text: event.text,
            });
        }
    }
    session.out.show(&Told { events }, |told| told.events.iter().map(words).collect());
    Ok(Exit::Done)
}

fn names(session: &Session, selection: &Selection) -> Vec<String> {
    if selection.pipelines.is_empty() {
        return session.config.pipelines.iter().map(|one| one.name.to_string()).collect();
    }
    selection.pipelines.clone()
}

fn words(event: &ToldEvent) -> String {
    let ToldEvent { pipeline, at, code, text } = event;
    format!("{at}  {pipeline}  {code}  {text}\n")
}
