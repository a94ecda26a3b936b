//! Triggers and their functions, as they should stand.
//!
//! A trigger never decides what is live (X8). It names the keys of the old and the new rows; a first
//! statement takes the locks of their feed rows and draws the numbers under them (X9), a second one
//! looks in the table. What belongs to another table is only marked, without a lock (X15).

use super::key::KeyShape;
use super::names::{FeedNames, TableName, digest, literal, quote};
use super::statements::{UPDATE, named, recording, template};
use super::table::{Member, Table};
use super::wake::tell;

/// When a trigger fires, as the catalog has it.
const ROW: i16 = 1;
const BEFORE: i16 = 2;
const INSERT: i16 = 4;
const DELETE: i16 = 8;
const CHANGE: i16 = 16;
const TRUNCATE: i16 = 32;

/// The settings of every function of ours: whatever a session prefers, texts are the same, nothing is
/// hidden, and no name means another's.
pub(super) const SETTINGS: &[(&str, &str)] = &[
    ("search_path", "pg_catalog, pg_temp"),
    ("row_security", "off"),
    ("TimeZone", "UTC"),
    ("DateStyle", "ISO, MDY"),
    ("IntervalStyle", "postgres"),
    ("bytea_output", "hex"),
    ("extra_float_digits", "1"),
];

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Function {
    /// Unquoted, in our schema.
    pub name: String,
    pub body: String,
}

impl Function {
    /// Makes it, or makes it anew.
    pub fn create(&self) -> String {
        let settings: Vec<String> = SETTINGS
            .iter()
            .map(|(name, value)| {
                // A list of names is a list, and no name.
                let value =
                    if *name == "search_path" { (*value).to_owned() } else { literal(value) };
                format!("SET {name} = {value}")
            })
            .collect();
        format!(
            "CREATE OR REPLACE FUNCTION truekeep.{}() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER {} AS {}",
            quote(&self.name),
            settings.join(" "),
            literal(&self.body)
        )
    }
}

/// A trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trigger {
    pub table: TableName,
    /// Unquoted.
    pub name: String,
    /// The function's name.
    pub function: String,
    pub kind: i16,
    /// The names of its transition tables, joined by a space.
    pub rows: &'static str,
}

impl Trigger {
    /// Makes it, to fire whatever role a session plays in replication.
    pub fn create(&self) -> String {
        let events =
            [(INSERT, "INSERT"), (DELETE, "DELETE"), (CHANGE, "UPDATE"), (TRUNCATE, "TRUNCATE")];
        let event =
            events.iter().find(|(bit, _)| self.kind & bit != 0).map_or("", |(_, word)| word);
        let when = if self.kind & BEFORE != 0 { "BEFORE" } else { "AFTER" };
        let referencing = match self.rows {
            "old_rows new_rows" => " REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows",
            "new_rows" => " REFERENCING NEW TABLE AS new_rows",
            "old_rows" => " REFERENCING OLD TABLE AS old_rows",
            _ => "",
        };
        let each = if self.kind & ROW != 0 { "ROW" } else { "STATEMENT" };
        let (table, name) = (self.table.quoted(), quote(&self.name));
        format!(
            "CREATE TRIGGER {name} {when} {event} ON {table}{referencing} FOR EACH {each} \
             EXECUTE FUNCTION truekeep.{}();
             ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}",
            quote(&self.function)
        )
    }
}

/// What records the changes of one table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    pub functions: Vec<Function>,
    pub triggers: Vec<Trigger>,
}

/// The events that change rows.
const EVENTS: [(&str, i16, &[&str]); 3] = [
    ("insert", INSERT, &["new"]),
    ("update", CHANGE, &["old", "new"]),
    ("delete", DELETE, &["old"]),
];

impl Wanted {
    /// What records the relation's own changes.
    pub fn own(names: &FeedNames, table: &Table, key: &KeyShape) -> Self {
        let mut wanted = Self::default();
        for (event, kind, rows) in EVENTS {
            let source: Vec<String> = rows
                .iter()
                .map(|rows| {
                    let (prefix, from) = if table.by_row {
                        (format!("{}.", rows.to_uppercase()), String::new())
                    } else {
                        ("n.".to_owned(), format!(" FROM {rows}_rows AS n"))
                    };
                    let (text, columns) = (key.canonical(&prefix), key.as_numbered(&prefix));
                    format!("SELECT ({text}) COLLATE \"C\" AS key, {columns}{from}")
                })
                .collect();
            let named = named(table, key, &source.join(" UNION ALL "));
            let (record, look) = recording(names, &named, UPDATE);
            wanted.add(names, table, event, kind, &format!("{record};\n  {look};"));
        }
        let emptied = |text: &str| {
            let values = [("canonical", key.canonical("t.")), ("emptied", text.to_owned())];
            let (feed, version) = (names.feed(), names.version());
            template(
                include_str!("../../sql/trigger/emptied.sql"),
                &[
                    ("feed", &feed),
                    ("version", &version),
                    ("canonical", &values[0].1),
                    ("emptied", &values[1].1),
                ],
            )
        };
        wanted.truncated(names, table, "truncate", &emptied);
        wanted
    }

    /// What marks keys, or what rows refer to, when rows of a watched table change. `key` makes the
    /// text from the columns behind a prefix.
    pub fn marks(
        names: &FeedNames,
        table: &Table,
        watch: Option<&str>,
        identity: &str,
        key: &dyn Fn(&str) -> String,
    ) -> Self {
        let mut wanted = Self::default();
        let label = digest([identity], 8);
        let watch = watch.map_or("NULL".to_owned(), literal);
        let mark = |rows: &str| {
            let values = [
                ("mark", names.mark()),
                ("watch", watch.clone()),
                ("key", key("t.")),
                ("rows", rows.to_owned()),
            ];
            let values: Vec<(&str, &str)> =
                values.iter().map(|(name, value)| (*name, value.as_str())).collect();
            template(include_str!("../../sql/trigger/mark.sql"), &values)
        };
        for (event, kind, rows) in EVENTS {
            let source: Vec<String> = rows
                .iter()
                .map(|rows| {
                    if table.by_row {
                        format!("SELECT {}.*", rows.to_uppercase())
                    } else {
                        format!("SELECT * FROM {rows}_rows")
                    }
                })
                .collect();
            let marked = mark(&format!("({})", source.join(" UNION ALL ")));
            wanted.add(names, table, &format!("{label}_{event}"), kind, &format!("{marked};"));
        }
        wanted.truncated(names, table, &format!("{label}_truncate"), &|emptied: &str| {
            mark(&format!("ONLY {emptied}"))
        });
        wanted
    }

    fn add(&mut self, names: &FeedNames, table: &Table, label: &str, kind: i16, deeds: &str) {
        let rows = match kind {
            _ if table.by_row => "",
            INSERT => "new_rows",
            DELETE => "old_rows",
            _ => "old_rows new_rows",
        };
        let some = match (rows, kind) {
            ("", _) => "(SELECT) AS one",
            (_, DELETE) => "old_rows",
            _ => "new_rows",
        };
        let body = template(
            include_str!("../../sql/trigger/body.sql"),
            &[("some", some), ("deeds", deeds), ("tell", &tell(names))],
        );
        self.function(names, label, body);
        let kind = if table.by_row { kind | ROW } else { kind };
        // Rows that come through a parent pass no statement of it, so only leaves see them all.
        let members = table.members.iter().filter(|member| !table.by_row || member.leaf);
        self.put(names, members, label, kind, rows);
    }

    fn truncated(
        &mut self,
        names: &FeedNames,
        table: &Table,
        label: &str,
        statement: &dyn Fn(&str) -> String,
    ) {
        // A text that is in nothing else of the statement.
        const HERE: &str = "\u{1}";
        let whole = statement(HERE);
        let (before, after) = whole.split_once(HERE).expect("the table stands in the statement");
        let body = template(
            include_str!("../../sql/trigger/truncate.sql"),
            &[("before", &literal(before)), ("after", &literal(after))],
        );
        self.function(names, label, body);
        self.put(names, table.members.iter(), label, TRUNCATE | BEFORE, "");
    }

    fn function(&mut self, names: &FeedNames, label: &str, body: String) {
        let name = format!("{label}_{}", names.stem());
        self.functions.push(Function { name, body });
    }

    fn put<'a>(
        &mut self,
        names: &FeedNames,
        members: impl Iterator<Item = &'a Member>,
        label: &str,
        kind: i16,
        rows: &'static str,
    ) {
        for member in members {
            self.triggers.push(Trigger {
                table: member.name.clone(),
                name: names.trigger(label),
                function: format!("{label}_{}", names.stem()),
                kind,
                rows,
            });
        }
    }

    /// All of both.
    pub fn join(&mut self, other: Self) {
        self.functions.extend(other.functions);
        self.triggers.extend(other.triggers);
    }
}
