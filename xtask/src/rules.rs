//! `cargo xtask rules`: writes into docs/rules.md which tests prove each rule, from the tests' own first lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::error::TaskError;
use crate::tree::{self, Tree};

/// The document.
pub const PATH: &str = "docs/rules.md";

/// The most rules of each kind.
const RULES: u32 = 126;
const COUNTEREXAMPLES: u32 = 70;

/// Why a rule has no test, as its row begins.
const NOT_YET: &str = "not yet: ";
const NO_TEST: &str = "no test: ";

/// A rule: of behaviour, or the cure of a counterexample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Rule n.
    Behaviour(u32),
    /// X n.
    Cure(u32),
}

/// The names of tests by the rules that they prove.
pub type Proofs = BTreeMap<Rule, BTreeSet<String>>;

impl Rule {
    fn all() -> impl Iterator<Item = Self> {
        (1..=RULES).map(Self::Behaviour).chain((1..=COUNTEREXAMPLES).map(Self::Cure))
    }

    /// Reads `12` or `X12`.
    fn parse(text: &str) -> Option<Self> {
        match text.strip_prefix('X') {
            Some(number) => number.parse().ok().map(Self::Cure),
            None => text.parse().ok().map(Self::Behaviour),
        }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Behaviour(number) => write!(f, "{number}"),
            Self::Cure(number) => write!(f, "X{number}"),
        }
    }
}

/// Writes the document anew.
///
/// # Errors
/// When a file cannot be read or written.
pub fn run() -> Result<(), TaskError> {
    let root = tree::root();
    let tree = Tree::read(&root)?;
    let text = tree.files.iter().find(|file| file.path == PATH).map_or("", |file| &file.text);
    let path = root.join(PATH);
    fs::write(&path, rewritten(text, &proofs(&tree)))
        .map_err(|source| TaskError::Write { path, source })?;
    println!("rules: {PATH} is written");
    Ok(())
}

/// The document with the rows of proven rules as they are to be.
pub fn rewritten(text: &str, proofs: &Proofs) -> String {
    let row = |line: &str| match row(line).and_then(|(rule, _)| proofs.get_key_value(&rule)) {
        Some((rule, names)) => {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            format!("- **{rule}** {}\n", names.join(", "))
        }
        None => format!("{line}\n"),
    };
    text.lines().map(row).collect()
}

/// What is wrong with the document: the line, and why.
pub fn faults(text: &str, proofs: &Proofs) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut missing: BTreeSet<Rule> = Rule::all().collect();
    for (number, line) in (1..).zip(text.lines()) {
        let Some((rule, said)) = row(line) else { continue };
        if !missing.remove(&rule) {
            found.push((number, format!("{rule} has a row already, or is no rule")));
        }
        let excused = said.starts_with(NOT_YET) || said.starts_with(NO_TEST);
        if !proofs.contains_key(&rule) && !excused {
            let message = format!("no test names {rule}: say `{NOT_YET}` or `{NO_TEST}` and why");
            found.push((number, message));
        }
    }
    found.extend(missing.into_iter().map(|rule| (1, format!("{rule} has no row"))));
    let known = proofs.keys().filter(|rule| !Rule::all().any(|known| known == **rule));
    found.extend(known.map(|rule| (1, format!("a test names {rule}, which is no rule"))));
    if found.is_empty() && rewritten(text, proofs) != text {
        found.push((1, "tests and rows differ: run `cargo xtask rules`".to_owned()));
    }
    found
}

/// The rule of a row, and what the row says of it.
fn row(line: &str) -> Option<(Rule, &str)> {
    let (rule, said) = line.strip_prefix("- **")?.split_once("** ")?;
    Some((Rule::parse(rule)?, said))
}

/// Which tests prove what: functions with a test's attribute, and those of the conformance suite.
pub fn proofs(tree: &Tree) -> Proofs {
    let mut proofs = Proofs::new();
    let ours = |path: &str| path.starts_with("crates/") || path.starts_with("tests/");
    for file in tree.files.iter().filter(|file| file.is_rust() && ours(&file.path)) {
        let suite = file.path.starts_with("crates/conformance/src/");
        let (mut comment, mut is_test) = (String::new(), suite);
        for line in file.text.lines().map(str::trim) {
            if let Some(text) = line.strip_prefix("///") {
                comment.push_str(text);
            } else if line.starts_with("#[") {
                is_test |= line.contains("test");
            } else {
                if let Some(name) = function(line).filter(|_| is_test) {
                    for rule in named(&comment) {
                        proofs.entry(rule).or_default().insert(name.to_owned());
                    }
                }
                comment.clear();
                is_test = suite;
            }
        }
    }
    proofs
}

/// The name of the function that a line begins.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    let end = line.find(['(', '<'])?;
    line.get(..end)?.strip_prefix("fn ")
}

/// The rules that a text names: `Rule 12`, `rules 51 to 54 and 60`, `X7`.
fn named(text: &str) -> BTreeSet<Rule> {
    let mut found = BTreeSet::new();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let bare = |word: &str| word.trim_end_matches([',', ':', '.', ';']).to_owned();
        if word.starts_with('X') {
            found.extend(Rule::parse(&bare(word)));
            continue;
        }
        if !["Rule", "Rules", "rule", "rules"].contains(&word) {
            continue;
        }
        let (mut last, mut up_to) = (None, false);
        while let Some(&next) = words.peek() {
            let digits = bare(next).trim_end_matches(['a', 'b', 'c']).parse::<u32>().ok();
            match (next, digits) {
                ("and", _) => {}
                ("to", _) => up_to = true,
                (_, Some(number)) => {
                    let from = last.filter(|_| std::mem::take(&mut up_to)).unwrap_or(number);
                    found.extend((from..=number).map(Rule::Behaviour));
                    last = Some(number);
                    if next.ends_with([':', '.', ';']) {
                        words.next();
                        break;
                    }
                }
                (_, None) => break,
            }
            words.next();
        }
    }
    found
}

#[cfg(test)]
mod tests;
