//! What was found of one part of a deployment, as `check` and `doctor` tell it.

use serde::Serialize;
use truekeep::codes::Exit;
use truekeep::doctor::{Condition, Sign};
use truekeep::trouble::remedy;
use truekeep::wiring::Advice;
use truekeep_core::code::Code;
use truekeep_core::failure::PortError;

use crate::output::plain;
use crate::session::Session;

/// What was found of one part.
#[derive(Serialize)]
pub struct Finding {
    /// The pipeline; none for what all share.
    pub pipeline: Option<String>,
    /// `ledger`, `source`, `capture`, `rules` or `sink`.
    pub part: String,
    pub ok: bool,
    pub text: String,
    pub code: Option<String>,
    pub hint: Option<&'static str>,
    /// What would make it better.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub help: Vec<String>,
    #[serde(skip)]
    pub exit: Exit,
}

impl Finding {
    pub fn fits(pipeline: Option<&str>, part: &str, text: String) -> Self {
        let pipeline = pipeline.map(str::to_owned);
        let (help, exit) = (Vec::new(), Exit::Done);
        let part = part.to_owned();
        Self { pipeline, part, ok: true, text, code: None, hint: None, help, exit }
    }

    pub fn slow(pipeline: Option<&str>, advice: &Advice) -> Self {
        let mut help = advice.statements.clone();
        if help.is_empty() {
            help.push("no index helps".to_owned());
        }
        Self { help, ..Self::fits(pipeline, "source", format!("is slow: {}", advice.text)) }
    }

    pub fn wrong(
        pipeline: Option<&str>,
        part: &str,
        text: String,
        code: &Code,
        exit: Exit,
    ) -> Self {
        Self {
            pipeline: pipeline.map(str::to_owned),
            part: part.to_owned(),
            ok: false,
            text,
            code: Some(code.to_string()),
            hint: Some(remedy(code)),
            help: Vec::new(),
            exit,
        }
    }

    pub fn failed(
        session: &Session,
        pipeline: Option<&str>,
        part: &str,
        error: &PortError,
    ) -> Self {
        let text = plain(&session.config.redact(&error.chain()));
        Self::wrong(pipeline, part, text, &error.code, Exit::of(error.class, &error.code))
    }

    pub fn words(&self) -> String {
        let word = match (self.ok, self.help.is_empty()) {
            (true, true) => "ok  ",
            (true, false) => "warn",
            (false, _) => "FAIL",
        };
        let name = self.pipeline.as_deref().map_or_else(String::new, |name| format!("{name} "));
        let mut text = format!("{word}  {name}{} {}\n", self.part, self.text);
        if let (Some(hint), Some(code)) = (self.hint, &self.code) {
            text += &format!("      hint: {hint} (`truekeep explain {code}`)\n");
        }
        for statement in &self.help {
            text += &format!("      hint: {statement}\n");
        }
        text
    }

    /// A sign of the deployment's health.
    pub fn of(session: &Session, sign: Sign) -> Self {
        match sign.condition {
            Condition::Well => Self::fits(None, &sign.part, sign.text),
            Condition::Weak(help) => {
                Self { help: vec![help], ..Self::fits(None, &sign.part, sign.text) }
            }
            Condition::Ill(error) => {
                let failed = Self::failed(session, None, &sign.part, &error);
                Self { text: format!("{}: {}", sign.text, failed.text), ..failed }
            }
        }
    }
}
