//! The ledger's schema, one file per step and dialect.
//!
//! A step that was released is never edited: what comes after it is a new step.

/// One step of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// Its place, from 1 on without a gap; a schema's version is the number of its last step.
    pub number: u32,
    /// What it brings.
    pub name: &'static str,
    /// Its statements.
    pub sql: &'static str,
}

/// What a migration did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MigrationReport {
    /// The version that was found; 0 is a ledger that was made anew.
    pub before: u32,
    /// The version it has now.
    pub after: u32,
}

/// The version that these steps lead to.
pub fn newest(steps: &[Migration]) -> u32 {
    steps.last().map_or(0, |step| step.number)
}

/// The steps of a ledger in a Postgres database, in a schema of its own that is there before.
pub const POSTGRES: &[Migration] =
    &[Migration { number: 1, name: "ledger", sql: include_str!("../postgres/0001_ledger.sql") }];

/// The steps of a ledger in a SQLite file.
pub const SQLITE: &[Migration] =
    &[Migration { number: 1, name: "ledger", sql: include_str!("../sqlite/0001_ledger.sql") }];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_without_a_gap() {
        for steps in [POSTGRES, SQLITE] {
            let numbers: Vec<u32> = steps.iter().map(|step| step.number).collect();
            assert_eq!(numbers, (1..=newest(steps)).collect::<Vec<_>>());
        }
    }
}
