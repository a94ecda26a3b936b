//! A dependency is declared once, in the root, with its reason above it; members inherit it, and the lints.

use toml::{Table, Value};

use super::{Finding, World};
use crate::tree::File;

const RULE: &str = "manifest";

const KINDS: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// See the module.
pub fn check(world: &World) -> Vec<Finding> {
    let manifests = world.tree.files.iter().filter(|file| file.name() == "Cargo.toml");
    manifests.flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let table: Table = match file.text.parse() {
        Ok(table) => table,
        Err(error) => {
            let message = format!("the manifest does not parse: {}", error.message());
            return vec![Finding::fault(&file.path, 1, RULE, message)];
        }
    };
    if file.path == "Cargo.toml" { check_root(file, &table) } else { check_member(file, &table) }
}

/// Each dependency that is not a path has a comment on the line above.
fn check_root(file: &File, table: &Table) -> Vec<Finding> {
    let declared = table
        .get("workspace")
        .and_then(|workspace| workspace.get("dependencies"))
        .and_then(Value::as_table);
    let foreign = declared.into_iter().flatten().filter(|(_, value)| value.get("path").is_none());
    let mut found = Vec::new();
    for (name, _) in foreign {
        let line = line_of(file, "[workspace.dependencies]", name);
        let above = line.checked_sub(2).and_then(|index| file.text.lines().nth(index));
        if !above.is_some_and(|above| above.starts_with('#')) {
            let message =
                format!("`{name}` has no reason: write it as a comment on the line above");
            found.push(Finding::fault(&file.path, line, RULE, message));
        }
    }
    found
}

fn check_member(file: &File, table: &Table) -> Vec<Finding> {
    let mut found = Vec::new();
    if !table.get("lints").is_some_and(is_inherited) {
        let message = "inherit the lints: `[lints]` with `workspace = true`";
        found.push(Finding::fault(&file.path, 1, RULE, message));
    }
    for (header, dependencies) in sections(table) {
        for (name, _) in dependencies.iter().filter(|(_, value)| !is_inherited(value)) {
            let line = line_of(file, &header, name);
            let message = format!("declare `{name}` in the root and use `.workspace = true` here");
            found.push(Finding::fault(&file.path, line, RULE, message));
        }
    }
    found
}

fn is_inherited(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

/// The tables of dependencies, also those of one platform, each with its header.
fn sections(table: &Table) -> Vec<(String, &Table)> {
    let mut found: Vec<(String, &Table)> = Vec::new();
    let platforms = table.get("target").and_then(Value::as_table).into_iter().flatten();
    for kind in KINDS {
        if let Some(section) = table.get(*kind).and_then(Value::as_table) {
            found.push((format!("[{kind}]"), section));
        }
    }
    for (_, platform) in platforms {
        for kind in KINDS {
            if let Some(section) = platform.get(*kind).and_then(Value::as_table) {
                // The quotes in such a header vary, so the first line that names the dependency must do.
                found.push((String::new(), section));
            }
        }
    }
    found
}

/// The line of an entry below a header, both as written by hand.
fn line_of(file: &File, header: &str, name: &str) -> usize {
    let mut lines = file
        .text
        .lines()
        .enumerate()
        .skip_while(|(_, line)| line.trim() != header && !header.is_empty());
    let names_it = |line: &str| {
        let rest = line.trim_start().trim_start_matches('"').strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['.', ' ', '=', '"']))
    };
    lines.find(|(_, line)| names_it(line)).map_or(1, |(index, _)| index + 1)
}

#[cfg(test)]
mod tests;
