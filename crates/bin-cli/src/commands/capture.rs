//! `capture`: what records changes in the source.

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::config::PipelineConfig;
use truekeep::trouble::remedy;
use truekeep::wiring::{SourcePorts, open_source};
use truekeep_core::code::Code;
use truekeep_core::ports::{CaptureReport, CaptureState};

use crate::answers::Answers;
use crate::args::{Capture, Selection};
use crate::progress::Progress;
use crate::session::Session;

#[derive(Serialize)]
struct Captures {
    trusted: bool,
    #[serde(flatten)]
    answers: Answers<PipelineCapture>,
}

#[derive(Serialize)]
struct PipelineCapture {
    pipeline: String,
    source: String,
    table: String,
    /// `trusted`, `filling`, or a code.
    state: String,
    /// What differs from what `install` makes.
    differences: Vec<String>,
    rows: u64,
    tombstones: u64,
}

pub async fn capture(session: &Session, wanted: &Capture) -> Result<Exit, Trouble> {
    match wanted {
        Capture::Install(selection) => install(session, selection).await,
        Capture::Verify(selection) => verify(session, selection).await,
        Capture::Remove(selection) => remove(session, selection).await,
    }
}

async fn install(session: &Session, selection: &Selection) -> Result<Exit, Trouble> {
    let installed = async |pipeline: &PipelineConfig| {
        let source = open_source(&session.config, pipeline).await?;
        source.capture.install().await?;
        fill(session, pipeline, &source).await?;
        Ok(PipelineCapture::of(pipeline, source.capture.verify().await?))
    };
    Ok(answer(session, session.each(selection, installed).await?))
}

/// Records the rows that were there before, page by page, resuming where it was stopped.
async fn fill(
    session: &Session,
    pipeline: &PipelineConfig,
    source: &SourcePorts,
) -> Result<(), Trouble> {
    let mut progress = Progress::new(session.out, format!("fill {}", pipeline.name), 0);
    loop {
        let filled = source.capture.fill().await?;
        progress.at(filled.filled, filled.total);
        if filled.done {
            progress.end();
            return Ok(());
        }
    }
}

async fn verify(session: &Session, selection: &Selection) -> Result<Exit, Trouble> {
    let verified = async |pipeline: &PipelineConfig| {
        let source = open_source(&session.config, pipeline).await?;
        Ok(PipelineCapture::of(pipeline, source.capture.verify().await?))
    };
    Ok(answer(session, session.each(selection, verified).await?))
}

async fn remove(session: &Session, selection: &Selection) -> Result<Exit, Trouble> {
    if selection.pipelines.is_empty() {
        let message = "which pipeline's capture is removed is not said";
        let hint = "name it with `--pipeline NAME`: without capture it is stale";
        return Err(Trouble::Usage(message.to_owned(), hint.to_owned()));
    }
    let selected = session.selected(selection)?;
    let config = &session.config;
    let shares = |other: &&PipelineConfig| {
        !selected.contains(other) && selected.iter().any(|one| config.share_feed(one, other))
    };
    if let Some(other) = config.pipelines.iter().find(shares) {
        let message = format!("the pipeline `{}` follows the same table", other.name);
        let hint = format!("name it as well with `--pipeline {}`, or remove it first", other.name);
        return Err(Trouble::Guard(message, hint));
    }
    let removed = async |pipeline: &PipelineConfig| {
        let source = open_source(&session.config, pipeline).await?;
        source.capture.remove().await?;
        Ok(PipelineCapture::of(pipeline, source.capture.verify().await?))
    };
    let answers = session.each(selection, removed).await?;
    let captures = Captures { trusted: false, answers };
    session.out.show(&captures, |captures| {
        let line = |capture: &PipelineCapture| {
            format!("{}: capture of {} removed\n", capture.pipeline, capture.table)
        };
        captures.answers.pipelines.iter().map(line).collect()
    });
    Ok(captures.answers.end(session, Exit::Done))
}

fn answer(session: &Session, answers: Answers<PipelineCapture>) -> Exit {
    let found = answers.pipelines.iter().all(|capture| capture.state == TRUSTED);
    let captures = Captures { trusted: found && answers.all_answered(), answers };
    session.out.show(&captures, |captures| captures.answers.pipelines.iter().map(words).collect());
    captures.answers.end(session, if found { Exit::Done } else { Exit::Incomplete })
}

const TRUSTED: &str = "trusted";

impl PipelineCapture {
    fn of(pipeline: &PipelineConfig, report: CaptureReport) -> Self {
        Self {
            pipeline: pipeline.name.to_string(),
            source: pipeline.source.clone(),
            table: pipeline.table.clone(),
            state: match report.state {
                CaptureState::Trusted(_) => TRUSTED.to_owned(),
                CaptureState::Filling => Code::CAPTURE_FILLING.to_string(),
                CaptureState::Broken(code) => code.to_string(),
            },
            differences: report.differences,
            rows: report.feed_rows,
            tombstones: report.tombstones,
        }
    }
}

fn words(capture: &PipelineCapture) -> String {
    let PipelineCapture { pipeline, table, state, rows, tombstones, .. } = capture;
    let mut text = match state.as_str() {
        TRUSTED => format!(
            "{pipeline}: every change of {table} is recorded, {rows} keys ({tombstones} deleted)\n"
        ),
        code => {
            let hint = remedy(&Code::from_outside(code));
            let what = match code {
                "CAPTURE_MISSING" => "are not recorded",
                _ => "are not all recorded",
            };
            format!("{pipeline}: changes of {table} {what}, {code}\n  hint: {hint}\n")
        }
    };
    // What is not there at all lacks each of its parts.
    let named = if state == "CAPTURE_MISSING" { &[] } else { capture.differences.as_slice() };
    for difference in named {
        text += &format!("  {difference}\n");
    }
    text
}
