//! What is wrong with a configuration, shown with the line it speaks of.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use serde::Serialize;

/// One thing that is wrong, or worth a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Bytes of the text it speaks of; none if it speaks of the file as a whole.
    pub span: Option<Range<usize>>,
    /// What is wrong, in lower case without a full stop.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

/// A problem as it is printed in JSON.
#[derive(Debug, Clone, Serialize)]
pub struct PlacedProblem {
    /// The line, from 1; none if it speaks of the file as a whole.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

/// A configuration that cannot be used: every problem that was found in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidConfig {
    path: PathBuf,
    text: String,
    problems: Vec<Problem>,
}

impl InvalidConfig {
    pub(crate) fn new(path: &Path, text: &str, mut problems: Vec<Problem>) -> Self {
        problems.sort_by_key(|problem| problem.span.as_ref().map_or(0, |span| span.start));
        Self { path: path.to_owned(), text: text.to_owned(), problems }
    }

    /// A file that cannot even be read.
    pub(crate) fn unreadable(path: &Path, reason: &str, remedy: &str) -> Self {
        let message = format!("failed to read {}: {reason}", path.display());
        let problem = Problem { span: None, message, remedy: remedy.to_owned() };
        Self::new(path, "", vec![problem])
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong, in the order of the file.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// What is wrong, with lines and columns.
    pub fn placed(&self) -> Vec<PlacedProblem> {
        self.problems.iter().map(|problem| placed(&self.text, problem)).collect()
    }

    /// The problems as a compiler shows them; `colour` only for a terminal.
    pub fn render(&self, colour: bool) -> String {
        let problems = self.problems.iter();
        render(problems, &self.path, &self.text, colour, Level::ERROR)
    }
}

impl fmt::Display for InvalidConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for InvalidConfig {}

pub(super) fn render<'p>(
    problems: impl Iterator<Item = &'p Problem>,
    path: &Path,
    text: &str,
    colour: bool,
    level: Level<'static>,
) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let name = path.display().to_string();
    let shown = problems.map(|problem| {
        let title = level.clone().primary_title(problem.message.as_str());
        let help = Level::HELP.message(problem.remedy.as_str());
        let group = match &problem.span {
            Some(span) => Group::with_title(title).element(
                Snippet::source(text)
                    .path(name.as_str())
                    .annotation(AnnotationKind::Primary.span(span.clone())),
            ),
            None => Group::with_title(title),
        };
        renderer.render(&[group.element(help)])
    });
    shown.collect::<Vec<_>>().join("\n\n")
}

pub(super) fn placed(text: &str, problem: &Problem) -> PlacedProblem {
    let place = problem.span.as_ref().map(|span| {
        let before = &text[..text.floor_char_boundary(span.start)];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    });
    PlacedProblem {
        line: place.map(|(line, _)| line),
        column: place.map(|(_, column)| column),
        message: problem.message.clone(),
        remedy: problem.remedy.clone(),
    }
}
