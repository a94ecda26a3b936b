//! Every package of the resolved graph, on any platform, can be used under a licence of the list.

use spdx::{AdditionItem, Expression, LicenseReq, ParseMode};

use super::{Finding, World};
use crate::metadata::Package;

/// What our own packages say.
const OURS: &str = "Apache-2.0 OR MIT";

/// Licences that ask for no more than their own text and a notice, and for MPL-2.0 changes to its own files.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "blessing",
    "BSD-1-Clause",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Additions that only take conditions away.
const ALLOWED_ADDITIONS: &[&str] = &["LLVM-exception"];

/// See the module.
pub fn check(world: &World) -> Vec<Finding> {
    let mut found = Vec::new();
    for package in &world.metadata.packages {
        if let Some(message) = objection(package, world.metadata.is_member(package)) {
            let message = format!("{} {}: {message}", package.name, package.version);
            found.push(Finding::fault("Cargo.lock", line_of(world, package), "licence", message));
        }
    }
    found
}

fn objection(package: &Package, is_ours: bool) -> Option<String> {
    let Some(licence) = package.license.as_deref() else {
        return Some("no licence expression".to_owned());
    };
    if is_ours {
        return (licence != OURS).then(|| format!("`{licence}` should be `{OURS}`"));
    }
    // Old packages write a slash for OR.
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Err(error) => Some(format!("`{licence}` is no licence expression: {}", error.reason)),
        Ok(expression) if expression.evaluate(is_allowed) => None,
        Ok(_) => Some(format!("`{licence}` is not on the list of allowed licences")),
    }
}

fn is_allowed(requirement: &LicenseReq) -> bool {
    let is_listed = requirement.license.id().is_some_and(|id| ALLOWED.contains(&id.name));
    let addition = requirement.addition.as_ref().map(AdditionItem::id);
    let has_fair_addition = match addition {
        None => true,
        Some(id) => id.is_some_and(|id| ALLOWED_ADDITIONS.contains(&id.name)),
    };
    is_listed && has_fair_addition
}

fn line_of(world: &World, package: &Package) -> usize {
    let name = format!("name = \"{}\"", package.name);
    world.tree.file("Cargo.lock").map_or(1, |file| file.line_where(|line| line == name))
}

#[cfg(test)]
mod tests;
