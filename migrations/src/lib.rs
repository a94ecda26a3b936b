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

/// The steps of a ledger in a SQLite file.
pub const SQLITE: &[Migration] =
    &[Migration { number: 1, name: "ledger", sql: include_str!("../sqlite/0001_ledger.sql") }];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_without_a_gap() {
        let numbers: Vec<u32> = SQLITE.iter().map(|step| step.number).collect();
        assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>());
    }
}
