//! The answers of a command about several pipelines: one that fails stops no other.

use serde::Serialize;
use truekeep::Trouble;
use truekeep::codes::Exit;
use truekeep::config::PipelineConfig;
use truekeep::trouble::TroubleReport;

use crate::args::Selection;
use crate::session::Session;

/// What became of each pipeline, in the order they were named.
#[derive(Debug, Serialize)]
pub struct Answers<T> {
    pub pipelines: Vec<T>,
    /// Those that gave no answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<Failed>,
}

#[derive(Debug, Serialize)]
struct Failed {
    pipeline: String,
    error: TroubleReport,
    #[serde(skip)]
    exit: Exit,
}

impl Session {
    /// Asks each of the pipelines that were named, or all of them.
    ///
    /// Where one is meant, its failure is the command's.
    pub async fn each<'s, T>(
        &'s self,
        selection: &Selection,
        mut ask: impl AsyncFnMut(&'s PipelineConfig) -> Result<T, Trouble>,
    ) -> Result<Answers<T>, Trouble> {
        let selected = self.selected(selection)?;
        let (mut pipelines, mut failed) = (Vec::new(), Vec::new());
        for pipeline in &selected {
            match ask(pipeline).await {
                Ok(answer) => pipelines.push(answer),
                Err(trouble) if selected.len() == 1 => return Err(trouble),
                Err(trouble) => {
                    let mut error = trouble.report();
                    error.message = self.config.redact(&error.message);
                    let (pipeline, exit) = (pipeline.name.to_string(), trouble.exit());
                    failed.push(Failed { pipeline, error, exit });
                }
            }
        }
        Ok(Answers { pipelines, failed })
    }
}

impl<T> Answers<T> {
    /// Whether none of them failed.
    pub fn all_answered(&self) -> bool {
        self.failed.is_empty()
    }

    /// Tells people what failed, after the answers; programs have it in them. The first failure
    /// decides how the process exits, since what it left open may be worse than what was found.
    pub fn end(&self, session: &Session, exit: Exit) -> Exit {
        for Failed { pipeline, error, .. } in &self.failed {
            if !session.out.is_json() {
                let message = format!("{pipeline}: {}", error.message);
                session.out.failed(&TroubleReport { message, ..error.clone() }, None);
            }
        }
        self.failed.first().map_or(exit, |first| first.exit)
    }
}
