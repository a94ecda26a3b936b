//! What is wrong with a row stands in its text, so that every store knows it.

use crate::plan::Poison;

const WORDS: &[(Poison, &str)] = &[
    (Poison::Unloadable, "unloadable "),
    (Poison::Refused, "refused "),
    (Poison::RefusesBatch, "refuses-batch "),
    (Poison::PutOff, "put-off "),
    (Poison::Kills, "kills "),
    (Poison::KillsReader, "kills-reader "),
];

/// What is wrong with a text.
pub(crate) fn of(text: &str) -> Option<Poison> {
    WORDS.iter().find(|(_, word)| text.starts_with(word)).map(|(poison, _)| *poison)
}

/// The text with this wrong.
pub(crate) fn with(poison: Poison, text: &str) -> String {
    let word = WORDS.iter().find(|(one, _)| *one == poison).map_or("", |(_, word)| word);
    format!("{word}{text}")
}
