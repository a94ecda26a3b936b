//! Every SQL file is used: a statement that nobody runs is a statement that nobody tests.
//!
//! Used means: an `include_str!` of the same crate names it, by its path from the source file, or by a path's tail
//! where the path is put together with `concat!`.

use std::collections::BTreeSet;

use super::syntax::{self, Token};
use super::{Finding, World};
use crate::tree::{File, Tree};

/// See the module.
pub fn check(world: &World) -> Vec<Finding> {
    let statements = world.tree.files.iter().filter(|file| is_statement(file));
    let mut used = None;
    let mut found = Vec::new();
    for file in statements {
        let used = used.get_or_insert_with(|| Mentions::read(&world.tree));
        if !used.contain(&file.path, home(&world.tree, &file.path)) {
            let message = "no `include_str!` of its crate names this file";
            found.push(Finding::fault(&file.path, 1, "sql", message));
        }
    }
    found
}

fn is_statement(file: &File) -> bool {
    file.path.ends_with(".sql") && (file.has_part("sql") || file.path.starts_with("migrations/"))
}

/// The folder of the crate that holds the path, with a slash at its end; empty for the root.
fn home<'path>(tree: &Tree, path: &'path str) -> &'path str {
    let folders = path.rmatch_indices('/').map(|(end, _)| &path[..=end]);
    folders
        .into_iter()
        .find(|folder| tree.file(&format!("{folder}Cargo.toml")).is_some())
        .unwrap_or("")
}

/// What the `include_str!` of all crates name.
#[derive(Default)]
struct Mentions {
    /// Whole paths.
    paths: BTreeSet<String>,
    /// The crate's folder, and the end of a path.
    tails: BTreeSet<(String, String)>,
}

impl Mentions {
    fn read(tree: &Tree) -> Self {
        let mut mentions = Self::default();
        for file in tree.rust() {
            // Text that is not Rust is found by another check.
            let tokens = syntax::tokens(&file.text).unwrap_or_default();
            for index in 0..tokens.len() {
                if syntax::begins_with(&tokens[index..], &["include_str", "!", "("]) {
                    mentions.add(tree, file, syntax::inside(&tokens[index + 2..]));
                }
            }
        }
        mentions
    }

    fn add(&mut self, tree: &Tree, file: &File, argument: &[Token]) {
        let strings =
            argument.iter().filter_map(|token| syn::parse_str::<syn::LitStr>(&token.text).ok());
        let strings: Vec<String> = strings.map(|string| string.value()).collect();
        if let ([_], [whole]) = (argument, &strings[..]) {
            self.paths.insert(resolve(&file.path, whole));
            return;
        }
        let parts = strings.iter().filter(|part| *part != "CARGO_MANIFEST_DIR");
        let joined: String = parts.map(String::as_str).collect();
        let tail = joined.trim_start_matches("../").trim_start_matches('/').to_owned();
        self.tails.insert((home(tree, &file.path).to_owned(), tail));
    }

    fn contain(&self, path: &str, home: &str) -> bool {
        let is_at_end =
            |tail: &str| path.strip_suffix(tail).is_some_and(|rest| rest.ends_with('/'));
        self.paths.contains(path)
            || self.tails.iter().any(|(own, tail)| own == home && is_at_end(tail))
    }
}

/// The path from the root of what the file at `from` calls `relative`.
fn resolve(from: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests;
