//! Words that may not stand in Rust source: tests that are switched off anywhere; sleeping and hash collections in the
//! crates that a seed must be able to replay.
//!
//! A hash map's order differs from run to run, so the crates that must be replayable use none at all: nobody has to
//! judge which of them is iterated. Clocks and randomness are banned there by the crates' `clippy.toml`.

use super::syntax::{self, Token};
use super::{Finding, World};
use crate::tree::File;

const RULE: &str = "ban";

/// The crates that a seed must be able to replay.
const REPLAYED: &[&str] = &["crates/core/", "crates/engine/", "crates/simulation/"];

/// See the module.
pub fn check(world: &World) -> Vec<Finding> {
    world.tree.rust().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let tokens = match syntax::tokens(&file.text) {
        Ok(tokens) => tokens,
        Err((line, reason)) => {
            return vec![Finding::fault(&file.path, line, "syntax", reason)];
        }
    };
    let is_replayed = REPLAYED.iter().any(|folder| file.path.starts_with(folder));
    let mut found = Vec::new();
    for index in 0..tokens.len() {
        let message = ignored(&tokens[index..]).or_else(|| {
            if is_replayed {
                hashed(&tokens[index]).or_else(|| sleeping(&tokens, index))
            } else {
                None
            }
        });
        if let Some(message) = message {
            found.push(Finding::fault(&file.path, tokens[index].line, RULE, message));
        }
    }
    found
}

/// `#[ignore]`, also with a reason or behind a condition.
fn ignored(rest: &[Token]) -> Option<&'static str> {
    if !syntax::begins_with(rest, &["#", "["]) {
        return None;
    }
    let attribute = syntax::inside(&rest[1..]);
    let is_conditional = syntax::begins_with(attribute, &["cfg_attr"]);
    let is_ignored = syntax::begins_with(attribute, &["ignore"])
        || (is_conditional && attribute.iter().any(|token| token.text == "ignore"));
    is_ignored.then_some("a test is not switched off: repair it or remove it")
}

fn hashed(token: &Token) -> Option<&'static str> {
    match token.text.as_str() {
        "HashMap" => Some("`HashMap` has no stable order: use `BTreeMap`"),
        "HashSet" => Some("`HashSet` has no stable order: use `BTreeSet`"),
        _ => None,
    }
}

/// A sleep that is not a method of a port: `sleep(..)`, `time::sleep(..)`, any mention of `thread::sleep`.
fn sleeping(tokens: &[Token], index: usize) -> Option<&'static str> {
    let before = |back: usize| index.checked_sub(back).map_or("", |at| tokens[at].text.as_str());
    let is_sleep = tokens[index].text == "sleep";
    let is_called = syntax::begins_with(&tokens[index + 1..], &["("]);
    let is_free = is_called && !matches!(before(1), "." | "fn");
    let is_of_thread = before(1) == ":" && before(2) == ":" && before(3) == "thread";
    (is_sleep && (is_free || is_of_thread))
        .then_some("no sleeping here: wait through the `Clock` port")
}

#[cfg(test)]
mod tests;
