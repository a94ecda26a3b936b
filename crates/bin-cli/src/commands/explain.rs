//! `explain`: what a code means, or what a pipeline does and waits for.

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::status::{Known, PipelineStatus, due};
use truekeep::wiring::Purpose;
use truekeep_core::code::{Code, Entry, REGISTRY};

use crate::args::Explain;
use crate::output::{Output, dash, plain, table};
use crate::session::Session;

#[derive(Serialize)]
struct Explained {
    code: &'static str,
    meaning: &'static str,
    cause: &'static str,
    remedy: &'static str,
}

#[derive(Serialize)]
struct Registry {
    codes: Vec<Explained>,
    exits: Vec<ExitExplained>,
}

#[derive(Serialize)]
struct ExitExplained {
    exit: u8,
    meaning: &'static str,
}

impl Explained {
    fn of(entry: &'static Entry) -> Self {
        let Entry { code, meaning, cause, remedy } = entry;
        Self { code: code.as_str(), meaning, cause, remedy }
    }
}

/// Explains a code, or lists them all; none if something else is meant.
pub fn code(wanted: &Explain, out: Output) -> Option<Exit> {
    let Some(what) = &wanted.what else {
        let exit = |exit: Exit| ExitExplained { exit: exit.number(), meaning: exit.meaning() };
        let registry = Registry {
            codes: REGISTRY.iter().map(Explained::of).collect(),
            exits: Exit::ALL.map(exit).into(),
        };
        out.show(&registry, |registry| {
            let codes: Vec<_> =
                registry.codes.iter().map(|e| [e.code.to_owned(), e.meaning.to_owned()]).collect();
            let exits: Vec<_> = registry
                .exits
                .iter()
                .map(|exit| [exit.exit.to_string(), exit.meaning.to_owned()])
                .collect();
            format!(
                "{}\n{}",
                table(["code", "meaning"], &codes),
                table(["exit", "meaning"], &exits)
            )
        });
        return Some(Exit::Done);
    };
    let entry = Code::from_outside(what).entry().filter(|entry| {
        // Pipelines are named in lower case, codes in upper case; any case of a code will do
        // unless it is a word that a pipeline may have.
        entry.code.as_str() == what || what.contains('_')
    })?;
    out.show(&Explained::of(entry), |explained| {
        let Explained { code, meaning, cause, remedy } = explained;
        format!("{code}\n  means  {meaning}\n  cause  {cause}\n  do     {remedy}")
    });
    Some(Exit::Done)
}

#[derive(Serialize)]
struct PipelineExplained {
    #[serde(flatten)]
    status: PipelineStatus,
    due: String,
    hint: Option<&'static str>,
    history: Vec<Happened>,
}

#[derive(Serialize)]
struct Happened {
    at: String,
    code: String,
    text: String,
}

/// Events that are shown.
const HISTORY: u32 = 10;

pub async fn pipeline(session: &Session, wanted: &Explain) -> Result<Exit, Trouble> {
    let name = wanted.what.as_deref().unwrap_or_default();
    let pipeline = session.named(name).map_err(|trouble| match trouble {
        Trouble::Usage(message, hint) => {
            Trouble::Usage(format!("`{name}` is no code, and {message}"), hint)
        }
        other => other,
    })?;
    let ledger = session.ledger(Purpose::Read).await?;
    let known = Known::read(&ledger, &pipeline.name).await?;
    let status = PipelineStatus::of(&known, session.config.worker.lease);
    let health = status.health.as_ref().map(|health| health.code.as_str());
    let code = status.code.as_deref().or(health).map(Code::from_outside);
    let code = known.closed().or(code);
    let history = match known.record {
        Some(_) => ledger.archive.history(&known.scope, HISTORY).await?,
        None => Vec::new(),
    };
    let history = history.into_iter().map(|(at, event)| Happened {
        at: at.to_string(),
        code: event.code.to_string(),
        text: event.text,
    });
    let explained = PipelineExplained {
        due: due(&known, pipeline.page_rows),
        hint: code.and_then(|code| code.entry()).map(|entry| entry.remedy),
        history: history.collect(),
        status,
    };
    session.out.show(&explained, words);
    Ok(Exit::Done)
}

fn words(explained: &PipelineExplained) -> String {
    let status = &explained.status;
    let mut text = format!("{}\n", status.pipeline);
    let mut line = |name: &str, value: String| text += &format!("  {name:<10}{value}\n");
    let code = status.code.as_ref().map_or_else(String::new, |code| format!(", {code}"));
    line("state", format!("{}{code}", status.state));
    line("moment", dash(status.moment.as_ref()));
    line("rules", dash(status.rules));
    line("phase", dash(status.phase));
    line("cursor", format!("{}, {} records delivered", status.cursor, status.delivered));
    line("items", format!("{} parked, {} waiting", status.parked, status.unsettled));
    line("due", explained.due.clone());
    line(
        "held by",
        status.holder.as_ref().map_or_else(
            || "nobody: no worker is at work".to_owned(),
            |holder| format!("{} until {}, fence {}", holder.holder, holder.until, holder.fence),
        ),
    );
    if let Some(health) = &status.health {
        let again = dash(health.due_at.as_ref());
        let attempts = health.attempts;
        line("trouble", format!("{}, failures {attempts}, again at {again}", health.code));
        line("", plain(&health.text));
    }
    if let Some(hint) = explained.hint {
        line("do", hint.to_owned());
    }
    for event in &explained.history {
        line("event", format!("{} {}: {}", event.at, event.code, plain(&event.text)));
    }
    text
}
