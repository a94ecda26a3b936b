//! A first configuration for a database: a pipeline for each table that can be followed, and why the others are not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[cfg(feature = "postgres")]
use crate::config::Address;
use crate::trouble::Trouble;
use crate::wiring::{FoundTable, introspect_source};

/// A proposed configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The text of the file.
    pub text: String,
    /// The tables that are followed.
    pub followed: Vec<String>,
    /// The tables that are not, each with the reason.
    pub left_out: Vec<(String, String)>,
}

/// Looks at the database at `url` and proposes a configuration for the file `config`.
///
/// # Errors
/// An address that is not SQLite's, and why the database cannot be read.
pub async fn propose(url: &str, config: &Path) -> Result<Proposal, Trouble> {
    #[cfg(feature = "postgres")]
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        let tables = crate::wiring::introspect_server(url).await?;
        let shown = Address::new(url.to_owned(), url.to_owned());
        let database = shown.canonical();
        let database = database.rsplit('/').next().unwrap_or_default();
        // A password has no place in the file.
        return Ok(written(&shown.to_string(), database, &shown.to_string(), &tables));
    }
    let Some(path) = url.strip_prefix("sqlite:") else {
        let message = format!("`{url}` names no kind of database that is known");
        return Err(Trouble::Usage(message, "write `sqlite:` before the path".to_owned()));
    };
    let path = Path::new(path.strip_prefix("//").unwrap_or(path));
    let tables = introspect_source(path).await?;
    let path = seen_from(path, config);
    let database = path.file_stem().map_or_else(String::new, |s| s.to_string_lossy().into());
    Ok(written(url, &database, &format!("sqlite:{}", path.display()), &tables))
}

/// The path as the configuration's folder sees it.
fn seen_from(path: &Path, config: &Path) -> PathBuf {
    let beside = config.parent().is_none_or(|folder| folder.as_os_str().is_empty());
    match (beside, path.canonicalize()) {
        (false, Ok(absolute)) => absolute,
        _ => path.to_owned(),
    }
}

fn written(url: &str, database: &str, location: &str, tables: &[FoundTable]) -> Proposal {
    let source = name(database);
    let location = quoted(location);
    let mut text = format!(
        "# Written by `truekeep init {}`. Then: `truekeep check`, `truekeep capture install`, and\n\
         # `truekeep run`. Every key is shown by `truekeep init --example`.\n\n\
         [source.{source}]\nurl = {location}\n",
        comment(url)
    );
    if url.starts_with("postgres") {
        text += &format!(
            "\n# Where truekeep keeps its own state; left out: a file beside this one. Workers on several\n\
             # machines need one on a server.\n\
             # [ledger]\n# url = {location}\n"
        );
    }
    let (mut followed, mut left_out, mut taken) = (Vec::new(), Vec::new(), BTreeSet::new());
    for table in tables {
        if let Some(reason) = &table.refusal {
            left_out.push((table.name.clone(), reason.clone()));
            continue;
        }
        let pipeline = free(&name(&table.name), &mut taken);
        let key = match table.key.as_slice() {
            [one] => quoted(one),
            all => format!("[{}]", all.iter().map(|c| quoted(c)).collect::<Vec<_>>().join(", ")),
        };
        let named = quoted(&table.name);
        text += &format!(
            "\n[pipeline.{pipeline}]\nsource = \"{source}\"\ntable = {named}\nkey = {key}\n\
             # document = [..]         # some columns; left out: all of them\n\
             # live_when = \"..\"        # only rows that meet a condition\n\
             sink = \"{pipeline}\"\n\n\
             [sink.{pipeline}]\nkind = \"sqlite\"\nurl = \"sqlite:{source}-mirror.db\"\n\
             table = {named}\n"
        );
        followed.push(table.name.clone());
    }
    if !left_out.is_empty() {
        text += "\n# Not followed:\n";
        for (table, reason) in &left_out {
            text += &format!("#   {}: {}\n", comment(table), comment(reason));
        }
    }
    Proposal { text, followed, left_out }
}

/// Bytes of a made name; a number still fits behind it.
const NAME_BYTES_MAX: usize = 56;

/// A name of a pipeline or a source that is near to this one.
fn name(from: &str) -> String {
    let mut name: String = from
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '_' })
        .take(NAME_BYTES_MAX)
        .collect();
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        name.insert_str(0, "t_");
    }
    name
}

/// The name, or the name with the first number behind it that nobody has.
fn free(name: &str, taken: &mut BTreeSet<String>) -> String {
    let candidates = std::iter::once(name.to_owned()).chain((2..).map(|n| format!("{name}_{n}")));
    for candidate in candidates {
        if taken.insert(candidate.clone()) {
            return candidate;
        }
    }
    unreachable!("numbers do not end")
}

/// A TOML string. `${` is what a value is put into, so a text that has it is written `$${`.
fn quoted(text: &str) -> String {
    toml::Value::String(text.replace("${", "$${")).to_string()
}

/// Text that cannot leave a comment's line.
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn table(name: &str, key: &[&str], refusal: Option<&str>) -> FoundTable {
        FoundTable {
            name: name.to_owned(),
            key: key.iter().map(|column| (*column).to_owned()).collect(),
            refusal: refusal.map(str::to_owned),
        }
    }

    #[test]
    fn a_proposal_is_a_configuration_whatever_tables_are_called() {
        let tables = [
            table("cities", &["id"], None),
            table("Cities ", &["a", "b\"c"], None),
            table("123", &["${x}"], None),
            table("a\nb", &["id"], None),
            table(&"é".repeat(80), &["id"], None),
            table("v\nw", &[], Some("it is a view")),
        ];
        let proposal = written("sqlite:my app.db", "my app", "sqlite:my app.db", &tables);
        let parsed = Config::parse(Path::new("truekeep.toml"), &proposal.text, &|_| None);
        let config = parsed.unwrap_or_else(|error| panic!("{error}\n{}", proposal.text));
        assert!(config.warnings().is_empty(), "{}", config.render_warnings(false));
        let mut found: Vec<_> = config.pipelines.iter().map(|p| p.table.clone()).collect();
        let mut wanted = proposal.followed.clone();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted);
        assert_eq!(proposal.left_out, [("v\nw".to_owned(), "it is a view".to_owned())]);
        let odd = config.pipelines.iter().find(|p| p.table == "123").expect("there");
        assert_eq!(odd.key, ["${x}"]);
    }
}
