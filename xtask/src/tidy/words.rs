//! The tree names no place outside itself: no path of one machine, no registry's host, nothing about who typed it.
//!
//! The words are written in two halves so that this file does not contain them.

use super::{Finding, World};

/// A text that may not appear, in any case of letters.
struct Ban {
    text: &'static str,
    /// May it be the beginning of a longer word?
    is_prefix: bool,
    reason: &'static str,
}

const MACHINE: &str = "a path of one machine";
const REGISTRY: &str = "a registry's host: cargo knows where packages come from";
const TYPIST: &str = "who typed it does not belong in the tree";

const BANS: &[Ban] = &[
    Ban { text: concat!("/wo", "rk/"), is_prefix: true, reason: MACHINE },
    Ban { text: concat!("/tm", "p/ta"), is_prefix: false, reason: MACHINE },
    Ban { text: concat!("../sha", "red"), is_prefix: false, reason: MACHINE },
    Ban { text: concat!(".libr", "ary"), is_prefix: false, reason: MACHINE },
    // The lockfile's name of the index goes on with a hyphen and is not a host.
    Ban { text: concat!("crates", ".io"), is_prefix: false, reason: REGISTRY },
    Ban { text: concat!("pypi", ".org"), is_prefix: false, reason: REGISTRY },
    Ban { text: concat!("python", "hosted.org"), is_prefix: false, reason: REGISTRY },
    Ban { text: concat!("npm", "js.org"), is_prefix: false, reason: REGISTRY },
    Ban { text: concat!("npm", "js.com"), is_prefix: false, reason: REGISTRY },
    Ban { text: concat!("deb", "ian.org"), is_prefix: false, reason: REGISTRY },
    Ban { text: concat!("ubu", "ntu.com"), is_prefix: false, reason: REGISTRY },
    Ban { text: concat!("sub", "agent"), is_prefix: true, reason: TYPIST },
    Ban { text: concat!("sub-", "agent"), is_prefix: true, reason: TYPIST },
    Ban { text: concat!("clau", "de"), is_prefix: true, reason: TYPIST },
];

/// See the module.
pub fn check(world: &World) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in &world.tree.files {
        for (index, line) in file.text.lines().enumerate() {
            let line = line.to_lowercase();
            for ban in BANS.iter().filter(|ban| ban.is_in(&line)) {
                let message = format!("`{}`: {}", ban.text, ban.reason);
                found.push(Finding::fault(&file.path, index + 1, "word", message));
            }
        }
    }
    found
}

impl Ban {
    fn is_in(&self, line: &str) -> bool {
        line.match_indices(self.text).any(|(start, _)| {
            let next = line[start + self.text.len()..].chars().next();
            self.is_prefix
                || !next.is_some_and(|next| next.is_alphanumeric() || "-_".contains(next))
        })
    }
}

#[cfg(test)]
mod tests;
