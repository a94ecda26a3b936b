//! The registry of exit codes, and the one table from failures to them.

use truekeep_core::code::Code;
use truekeep_core::failure::FailureClass;

/// What a process tells whoever started it. The numbers are promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// Something unexpected.
    Unexpected = 1,
    /// The command line or the configuration cannot be used.
    Config = 2,
    /// A sink differs from its source.
    Drift = 3,
    /// Not complete, or not as complete as was asked.
    Incomplete = 4,
    /// Another worker holds the scope.
    LeaseHeld = 5,
    /// A guard refused to do damage.
    GuardRefused = 6,
    /// A database or a sink needs an operator.
    Halted = 7,
}

impl Exit {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Done,
        Self::Unexpected,
        Self::Config,
        Self::Drift,
        Self::Incomplete,
        Self::LeaseHeld,
        Self::GuardRefused,
        Self::Halted,
    ];

    /// The number.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// What it says.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Unexpected => "something unexpected happened",
            Self::Config => "the command line or the configuration cannot be used",
            Self::Drift => "drift was found",
            Self::Incomplete => "not complete, or not as complete as was asked",
            Self::LeaseHeld => "another worker holds the scope",
            Self::GuardRefused => "a guard refused to do damage",
            Self::Halted => "a database or a sink needs an operator",
        }
    }

    /// The exit code of a failure: the code decides where the class says too little.
    pub fn of(class: FailureClass, code: &Code) -> Self {
        const BY_CODE: &[(Code, Exit)] = &[
            // What the configuration names is not there or cannot be used.
            (Code::CONFIG_INVALID, Exit::Config),
            (Code::RELATION_MISSING, Exit::Config),
            (Code::RELATION_REFUSED, Exit::Config),
            (Code::KEY_REFUSED, Exit::Config),
            (Code::RULES_CHANGED, Exit::Config),
            (Code::PIPELINE_UNKNOWN, Exit::Config),
            (Code::SINK_UNVERIFIABLE, Exit::Config),
            (Code::PIPELINE_REMOVED, Exit::Config),
            // Nothing is wrong, but what was asked for does not come.
            (Code::PIPELINE_PAUSED, Exit::Incomplete),
            (Code::GUARD_REFUSED, Exit::GuardRefused),
            (Code::LEASE_HELD, Exit::LeaseHeld),
            // Whoever holds a lock or a disk may let go, but this command is over.
            (Code::LEDGER_LOCKED, Exit::Halted),
            (Code::LEDGER_UNAVAILABLE, Exit::Halted),
            (Code::SOURCE_LOCKED, Exit::Halted),
            (Code::SOURCE_UNAVAILABLE, Exit::Halted),
            (Code::SINK_UNAVAILABLE, Exit::Halted),
            (Code::SINK_LOCKED, Exit::Halted),
        ];
        if let Some((_, exit)) = BY_CODE.iter().find(|(known, _)| known == code) {
            return *exit;
        }
        match class {
            FailureClass::Retry | FailureClass::Unknown => Self::Unexpected,
            FailureClass::Fenced => Self::LeaseHeld,
            FailureClass::Halted => Self::Halted,
            // A query of the rules that can never succeed is the configuration's.
            FailureClass::Terminal if *code == Code::SOURCE_READ_FAILED => Self::Config,
            FailureClass::Terminal => Self::Unexpected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_promised() {
        let numbers: Vec<u8> = Exit::ALL.iter().map(|exit| exit.number()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_failure_exits_by_its_code_and_else_by_its_class() {
        for (class, code, exit) in [
            (FailureClass::Retry, Code::SOURCE_LOCKED, Exit::Halted),
            (FailureClass::Halted, Code::LEDGER_CORRUPT, Exit::Halted),
            (FailureClass::Halted, Code::RELATION_MISSING, Exit::Config),
            (FailureClass::Terminal, Code::SOURCE_READ_FAILED, Exit::Config),
            (FailureClass::Fenced, Code::SINK_FENCED, Exit::LeaseHeld),
            (FailureClass::Unknown, Code::UNEXPECTED, Exit::Unexpected),
            (FailureClass::Terminal, Code::UNEXPECTED, Exit::Unexpected),
        ] {
            assert_eq!(Exit::of(class, &code), exit, "{class:?} {code}");
        }
    }
}
