//! `remove`: a pipeline, for good. Asks first, and goes on where an earlier removal was cut short.

use std::io::{IsTerminal, Write};

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::config::PipelineConfig;
use truekeep::operator;
use truekeep::removal::{Doomed, Plan, removed_at};
use truekeep::status::LedgerPorts;
use truekeep::wiring::Purpose;
use truekeep_core::PipelineName;
use truekeep_core::code::Code;
use truekeep_engine::{Gone, Progress, SinkEnd, SourceEnd};

use crate::args::{Abandon, Remove};
use crate::progress;
use crate::session::Session;

#[derive(Serialize)]
struct Removed {
    pipeline: String,
    /// Whether it was there before.
    changed: bool,
    /// `left_out`, `unwritten`, `foreign`, `kept` or `emptied`.
    sink: &'static str,
    /// Entries of the sink that were removed.
    emptied: u64,
    /// `left_out`, `forgotten` or `uncaptured`.
    source: &'static str,
    /// Whether the configuration still names it.
    configured: bool,
}

pub async fn remove(session: &Session, wanted: &Remove) -> Result<Exit, Trouble> {
    let configured = session.config.pipeline(&wanted.pipeline);
    let name = PipelineName::parse(&wanted.pipeline).map_err(|error| {
        Trouble::Usage(error.to_string(), "`truekeep status` names them".to_owned())
    })?;
    // Where no ledger is there is nothing to remove, and none is made.
    let ledger = session.ledger(Purpose::Read).await?;
    let Some(record) = ledger.ledger.pipeline(&name).await? else {
        return nothing(session, &ledger, &name).await;
    };
    let sides = match wanted.abandon {
        Some(Abandon::Both) => None,
        Some(Abandon::Sink) | None => Some(sides(session, wanted)?),
    };
    let spares_sink = wanted.abandon.is_some();
    let doomed = Doomed { record, sides, spares_sink, purge: wanted.purge };
    let plan = doomed.plan(&session.config);
    if !wanted.yes && !plan.under_way {
        ask(session, &plan)?;
    }
    let by = operator::by(wanted.reason.reason.as_deref());
    let mut bar = None;
    let told = |what: Progress| match what {
        Progress::Waiting(until) => session.out.note(&format!(
            "{name}: closed, no worker begins anything; what is under way may arrive until {until}"
        )),
        Progress::Emptied(removed) => bar
            .get_or_insert_with(|| progress::Progress::new(session.out, format!("empty {name}"), 0))
            .at(removed, removed),
    };
    let gone = doomed.remove(&session.config, &ledger, by, told).await;
    if let Some(bar) = bar {
        bar.end();
    }
    let gone = gone.inspect_err(|error| {
        if let Some(advice) = advice(&error.code, &name) {
            session.out.note(&advice);
        }
    })?;
    let removed = Removed::of(&name, gone.as_ref(), configured.is_some());
    session.out.show(&removed, words);
    Ok(Exit::Done)
}

/// The ledger does not know the name: it was removed before, or there never was one.
async fn nothing(
    session: &Session,
    ledger: &LedgerPorts,
    name: &PipelineName,
) -> Result<Exit, Trouble> {
    let configured = session.config.pipeline(name.as_str()).is_some();
    if removed_at(ledger, name).await?.is_some() {
        let removed = Removed { changed: false, ..Removed::of(name, None, configured) };
        session.out.show(&removed, words);
        return Ok(Exit::Done);
    }
    if !configured {
        // Names the nearest one.
        session.named(name.as_str())?;
    }
    let hint = format!(
        "take it out of the configuration; if capture is installed for it, \
         `truekeep capture remove -p {name}` comes first"
    );
    Err(Trouble::Usage(format!("`{name}` never began, so there is nothing to remove"), hint))
}

fn sides<'s>(session: &'s Session, wanted: &Remove) -> Result<&'s PipelineConfig, Trouble> {
    let name = &wanted.pipeline;
    session.named(name).map_err(|trouble| match trouble {
        Trouble::Usage(message, _) => {
            let hint = format!(
                "put it back until it is removed, as that says where its source and its sink are; \
                 `truekeep remove {name} --abandon` leaves both alone"
            );
            Trouble::Usage(message, hint)
        }
        other => other,
    })
}

/// How to remove a pipeline whose source or sink never comes back.
fn advice(code: &Code, name: &PipelineName) -> Option<String> {
    let of = |prefix: &str| code.as_str().starts_with(prefix);
    let (side, option) = if of("SINK_") {
        ("sink", "--abandon=sink")
    } else if of("SOURCE_") || of("RELATION_") {
        ("source", "--abandon")
    } else {
        return None;
    };
    Some(format!(
        "{name}: if its {side} is gone for good, `truekeep remove {name} {option}` goes without it"
    ))
}

/// Shows what would go and asks for the name. Whoever cannot be asked has to say so beforehand.
fn ask(session: &Session, plan: &Plan) -> Result<(), Trouble> {
    let name = &plan.pipeline;
    let refused =
        |message: String| Trouble::Guard(message, "if all of that may go, add `--yes`".to_owned());
    session.out.show(plan, plan_words);
    if session.out.is_json() || !std::io::stdin().is_terminal() {
        return Err(refused(format!("nobody has said yes to the removal of `{name}`")));
    }
    let mut err = std::io::stderr().lock();
    // Whoever does not see the question will not answer it.
    let _ = write!(err, "type the name of the pipeline to go on: ");
    let _ = err.flush();
    let mut answer = String::new();
    let read = std::io::stdin().read_line(&mut answer);
    read.map_err(|error| Trouble::File("read the answer".to_owned(), error))?;
    if answer.trim() == name {
        return Ok(());
    }
    Err(refused(format!("`{name}` is not removed: its name was not typed")))
}

fn plan_words(plan: &Plan) -> String {
    let mut text = format!("{} would be removed for good:\n", plan.pipeline);
    text += "  ledger  its certificate, progress, parked records and rules; the history stays\n";
    match (&plan.source, &plan.table) {
        (Some(source), Some(table)) => {
            text += &format!("  source  its registration in {source}");
            text += &match plan.shared_with.as_slice() {
                [] => format!(", and capture of `{table}` unless somebody else is registered\n"),
                others => format!("; capture of `{table}` stays for {}\n", others.join(", ")),
            };
        }
        _ => text += "  source  nothing: it is left alone, with capture and the registration\n",
    }
    text += &match (&plan.sink, plan.purge) {
        (Some(sink), true) => format!("  sink    everything it has in {sink}\n"),
        (Some(sink), false) => {
            format!("  sink    nothing: {sink} keeps its records (`--purge` empties it)\n")
        }
        (None, _) => "  sink    nothing: it is left alone, and still counts as its\n".to_owned(),
    };
    text
}

impl Removed {
    fn of(name: &PipelineName, gone: Option<&Gone>, configured: bool) -> Self {
        let (sink, emptied) = match gone.map(|gone| &gone.sink) {
            None | Some(SinkEnd::LeftOut) => ("left_out", 0),
            Some(SinkEnd::Unwritten) => ("unwritten", 0),
            Some(SinkEnd::Foreign) => ("foreign", 0),
            Some(SinkEnd::Kept) => ("kept", 0),
            Some(SinkEnd::Emptied(removed)) => ("emptied", *removed),
        };
        let source = match gone.map(|gone| gone.source) {
            None | Some(SourceEnd::LeftOut) => "left_out",
            Some(SourceEnd::Forgotten) => "forgotten",
            Some(SourceEnd::Uncaptured) => "uncaptured",
        };
        Self { pipeline: name.to_string(), changed: true, sink, emptied, source, configured }
    }
}

fn words(removed: &Removed) -> String {
    let Removed { pipeline, emptied, .. } = removed;
    let sink = match removed.sink {
        "emptied" => format!("{emptied} records were removed from the sink"),
        "kept" => "the sink keeps its records".to_owned(),
        "foreign" => "the sink is another pipeline's by now, and was left alone".to_owned(),
        "unwritten" => "the sink has nothing of it".to_owned(),
        _ => "the sink was left alone".to_owned(),
    };
    let source = match removed.source {
        "uncaptured" => "capture was taken out of the source",
        "forgotten" => "capture stays for others",
        _ => "the source was left alone",
    };
    let mut text = match (removed.changed, removed.sink, removed.source) {
        (false, ..) => {
            format!("{pipeline} was removed before: see `truekeep history -p {pipeline}`\n")
        }
        (true, "left_out", "left_out") => {
            format!("{pipeline} is removed; source and sink were left alone\n")
        }
        (true, ..) => format!("{pipeline} is removed: {sink}; {source}\n"),
    };
    if removed.configured {
        text += "take it out of the configuration; to have it again, run `truekeep apply`\n";
    }
    text
}
