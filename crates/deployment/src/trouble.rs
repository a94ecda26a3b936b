//! Why a command could not do its work: what is printed, what to do, and how the process exits.

use serde::Serialize;
use truekeep_core::code::Code;
use truekeep_core::failure::PortError;

use crate::codes::Exit;
use crate::config::{InvalidConfig, PlacedProblem};

/// A command's failure.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(InvalidConfig),
    /// A port failed.
    #[error(transparent)]
    Port(PortError),
    /// The command cannot be meant like this: what is wrong, and what to do.
    #[error("{0}")]
    Usage(String, String),
    /// A guard refuses to do damage: what it would be, and what to do instead.
    #[error("{0}")]
    Guard(String, String),
    /// A file of the command's own could not be read or written: which one, and what to do.
    #[error("failed to {0}")]
    File(String, #[source] std::io::Error),
}

/// A failure as it is printed in JSON.
#[derive(Debug, Clone, Serialize)]
pub struct TroubleReport {
    /// The code.
    pub code: String,
    /// What is wrong, with all causes.
    pub message: String,
    /// What to do.
    pub hint: String,
    /// How the process exits.
    pub exit: u8,
    /// Every problem of the configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<PlacedProblem>,
}

impl From<InvalidConfig> for Trouble {
    fn from(error: InvalidConfig) -> Self {
        Self::Config(error)
    }
}

impl From<PortError> for Trouble {
    fn from(error: PortError) -> Self {
        Self::Port(error)
    }
}

impl Trouble {
    /// The code.
    pub fn code(&self) -> Code {
        match self {
            Self::Config(_) | Self::Usage(..) => Code::CONFIG_INVALID,
            Self::Port(error) => error.code.clone(),
            Self::Guard(..) => Code::GUARD_REFUSED,
            Self::File(..) => Code::UNEXPECTED,
        }
    }

    /// How the process exits.
    pub fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::Usage(..) | Self::File(..) => Exit::Config,
            Self::Guard(..) => Exit::GuardRefused,
            Self::Port(error) => Exit::of(error.class, &error.code),
        }
    }

    /// What is wrong, in one line with all causes.
    pub fn message(&self) -> String {
        let text = match self {
            Self::Config(invalid) => match invalid.problems() {
                [one] if one.span.is_none() => one.message.clone(),
                [one] => format!("{}: {}", invalid.path().display(), one.message),
                all => format!("{} has {} problems", invalid.path().display(), all.len()),
            },
            Self::Port(error) => error.chain(),
            Self::Usage(message, _) | Self::Guard(message, _) => message.clone(),
            Self::File(_, cause) => format!("{self}: {cause}"),
        };
        // One line, whatever a database or a library has to say.
        text.split(['\n', '\r'])
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// What to do.
    pub fn hint(&self) -> String {
        match self {
            Self::Config(invalid) => match invalid.problems() {
                [one] => one.remedy.clone(),
                _ => remedy(&Code::CONFIG_INVALID).to_owned(),
            },
            Self::Port(error) => remedy(&error.code).to_owned(),
            Self::Usage(_, hint) | Self::Guard(_, hint) => hint.clone(),
            Self::File(..) => "mend the path or its rights".to_owned(),
        }
    }

    /// As it is printed in JSON.
    pub fn report(&self) -> TroubleReport {
        TroubleReport {
            code: self.code().to_string(),
            message: self.message(),
            hint: self.hint(),
            exit: self.exit().number(),
            problems: match self {
                Self::Config(invalid) => invalid.placed(),
                Self::Port(_) | Self::Usage(..) | Self::Guard(..) | Self::File(..) => Vec::new(),
            },
        }
    }
}

/// What the registry says to do about a code.
pub fn remedy(code: &Code) -> &'static str {
    code.entry().map_or("", |entry| entry.remedy)
}
