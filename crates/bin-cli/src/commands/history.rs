//! `history`: the newest events of each pipeline, newest first.

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::wiring::Purpose;
use truekeep_core::ScopeId;

use crate::args::History;
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
    for pipeline in session.selected(&wanted.selection)? {
        let scope = ScopeId::whole(pipeline.name.clone());
        for (at, event) in ledger.archive.history(&scope, wanted.limit).await? {
            events.push(ToldEvent {
                pipeline: pipeline.name.to_string(),
                at: at.to_string(),
                code: event.code.to_string(),
                text: event.text,
            });
        }
    }
    session.out.show(&Told { events }, |told| told.events.iter().map(words).collect());
    Ok(Exit::Done)
}

fn words(event: &ToldEvent) -> String {
    let ToldEvent { pipeline, at, code, text } = event;
    format!("{at}  {pipeline}  {code}  {text}\n")
}
