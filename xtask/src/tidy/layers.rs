//! Which of our packages may depend on which: dependencies point inward, and core touches nothing.

use super::{Finding, World};
use crate::metadata::{Dependency, Package};
use crate::tree::root;

const RULE: &str = "layer";

/// A set of our packages, by name; a star at the end stands for any ending.
type Names = &'static [&'static str];

/// What a package may depend on, and why.
struct Layer {
    packages: Names,
    may_use: Names,
}

/// One row per layer. A package that is in none is a finding, so that a new one gets its place here.
const LAYERS: &[Layer] = &[
    Layer { packages: &["truekeep-core", "truekeep-migrations"], may_use: &[] },
    Layer {
        packages: &[
            "truekeep-engine",
            "truekeep-conformance",
            "truekeep-projector-*",
            "truekeep-jobs",
            "truekeep-sqlite",
            "truekeep-postgres",
            "truekeep-mirror",
        ],
        may_use: &["truekeep-core"],
    },
    // A server for tests knows nothing of us.
    Layer { packages: &["truekeep-postgres-server"], may_use: &[] },
    // Connections and failures of SQLite are the same for a source, a ledger and a mirror.
    Layer {
        packages: &["truekeep-adapter-sqlite", "truekeep-sink-sqlite"],
        may_use: &["truekeep-core", "truekeep-migrations", "truekeep-sqlite", "truekeep-mirror"],
    },
    // And so are those of Postgres.
    Layer {
        packages: &["truekeep-adapter-postgres", "truekeep-sink-postgres"],
        may_use: &["truekeep-core", "truekeep-migrations", "truekeep-postgres", "truekeep-mirror"],
    },
    Layer {
        packages: &["truekeep-adapter-*", "truekeep-sink-*"],
        may_use: &["truekeep-core", "truekeep-migrations"],
    },
    Layer {
        packages: &["truekeep-simulation"],
        may_use: &[
            "truekeep-core",
            "truekeep-engine",
            "truekeep-adapter-memory",
            "truekeep-sink-memory",
            "truekeep-conformance",
        ],
    },
    // The only one that names adapters, sinks, clocks and randomness.
    Layer {
        packages: &["truekeep"],
        may_use: &[
            "truekeep-core",
            "truekeep-engine",
            "truekeep-adapter-*",
            "truekeep-sink-*",
            "truekeep-projector-*",
            "truekeep-jobs",
            "truekeep-conformance",
            "truekeep-migrations",
            "truekeep-sqlite",
            "truekeep-postgres",
        ],
    },
    Layer {
        packages: &["truekeep-worker", "truekeep-cli", "truekeep-example-*"],
        may_use: &["truekeep", "truekeep-engine", "truekeep-core"],
    },
    Layer { packages: &["truekeep-tests", "xtask"], may_use: &["*"] },
];

/// What any package may use for its own tests, beyond its layer.
const FOR_TESTS: Names =
    &["truekeep-conformance", "truekeep-adapter-*", "truekeep-sink-*", "truekeep-postgres-server"];

/// All that core may use of what others wrote.
const OF_CORE: Names = &["async-trait", "thiserror", "serde"];
/// And this, behind a feature.
const OF_CORE_OPTIONAL: Names = &["mockall"];

/// See the module.
pub fn check(world: &World) -> Vec<Finding> {
    let ours: Vec<&str> = world.metadata.members().map(|package| package.name.as_str()).collect();
    let mut found = Vec::new();
    for package in world.metadata.members() {
        for (dependency, message) in objections(package, &ours) {
            let (path, line) = place(world, package, dependency);
            found.push(Finding::fault(&path, line, RULE, message));
        }
    }
    found
}

/// The dependencies that are not allowed; none is named when the package has no layer.
fn objections<'own>(package: &'own Package, ours: &[&str]) -> Vec<(Option<&'own str>, String)> {
    let Some(layer) = LAYERS.iter().find(|layer| matches(layer.packages, &package.name)) else {
        let message = format!("`{}` has no layer: give it one in the task `tidy`", package.name);
        return vec![(None, message)];
    };
    let mut found = Vec::new();
    for dependency in &package.dependencies {
        let name = dependency.name.as_str();
        let is_allowed = if ours.contains(&name) {
            matches(layer.may_use, name) || (dependency.is_dev() && matches(FOR_TESTS, name))
        } else {
            package.name != "truekeep-core" || is_allowed_in_core(dependency)
        };
        if !is_allowed {
            found.push((Some(name), format!("`{}` may not depend on `{name}`", package.name)));
        }
    }
    found
}

fn is_allowed_in_core(dependency: &Dependency) -> bool {
    dependency.is_dev()
        || matches(OF_CORE, &dependency.name)
        || (dependency.optional && matches(OF_CORE_OPTIONAL, &dependency.name))
}

fn matches(names: Names, name: &str) -> bool {
    names.iter().any(|own| match own.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => *own == name,
    })
}

/// The manifest, from the root, and the line that names the dependency.
fn place(world: &World, package: &Package, dependency: Option<&str>) -> (String, usize) {
    let root = format!("{}/", root().display());
    let path = package.manifest_path.strip_prefix(&root).unwrap_or(&package.manifest_path);
    let names_it = |line: &str| {
        let rest = dependency.and_then(|name| line.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    let line = world.tree.file(path).map_or(1, |file| file.line_where(names_it));
    (path.to_owned(), line)
}

#[cfg(test)]
mod tests;
