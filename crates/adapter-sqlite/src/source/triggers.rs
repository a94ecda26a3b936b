//! The text of the triggers that record changes: SQL of SQLite 3.24, run by the application's own.
//!
//! A trigger never decides from its event what is live: it names keys, draws a number for each and
//! looks into the table. It writes by upserts only, because an OR clause of the outer statement
//! overrides any other conflict clause. What a REPLACE removes without a trigger gets its number
//! before: its feed row says [`DOUBTFUL`], which means that the table is to be asked.
//! Each number is given to one feed row: pages are cut between numbers.

use super::conflict::{Conflict, Event, conflict};
use super::key::KeyShape;
use super::names::{FeedNames, digest, literal, quote};
use super::table::{Affinity, Table, TableColumn, Term, Unique};

/// The row was there when its number was given.
pub(super) const LIVE: i64 = 0;
/// The row was gone when its number was given.
pub(super) const TOMBSTONE: i64 = 1;
/// The row may be removed right after its number was given.
pub(super) const DOUBTFUL: i64 = 2;

/// A trigger as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Trigger {
    pub name: String,
    pub table: String,
    pub sql: String,
}

/// The relation that is followed.
#[derive(Debug)]
pub(super) struct Relation<'a> {
    pub table: &'a Table,
    pub key: &'a KeyShape,
    pub names: &'a FeedNames,
}

/// A related table: rows of the relation are found by what its rows hold.
#[derive(Debug)]
pub(super) struct Related<'a> {
    /// What it is to the relation: a word of the triggers' names.
    pub role: &'static str,
    pub table: &'a Table,
    /// The relation's columns that are compared.
    pub via: Vec<&'a TableColumn>,
    /// Its columns that they are compared with.
    pub key: Vec<&'a TableColumn>,
}

impl Related<'_> {
    /// How columns of the relation are compared with those of a related table, as a mark keeps it: one
    /// row too many costs a delivery, one too few a wrong document, so what a join could convert or
    /// fold is told.
    pub fn comparison(&self) -> String {
        let numeric =
            |affinity| matches!(affinity, Affinity::Integer | Affinity::Real | Affinity::Numeric);
        let one = |(via, key): (&&TableColumn, &&TableColumn)| {
            let convert = match (via.affinity, key.affinity) {
                (via, _) if numeric(via) => "no",
                (_, key) if numeric(key) => "number",
                (Affinity::Blob, Affinity::Text) => "text",
                _ => "no",
            };
            let fold = if key.collation == via.collation { "BINARY" } else { &key.collation };
            serde_json::json!({ "column": via.name, "convert": convert, "fold": fold })
        };
        serde_json::Value::Array(self.via.iter().zip(&self.key).map(one).collect()).to_string()
    }
}

/// What tells a number from the same number in another future, as SQL: nobody writes it twice.
/// Applications put functions of their own in the place of `random`, hardly ever of this one.
pub(super) const STAMP: &str = "randomblob(8)";

/// The columns that hold a mark's values.
pub(super) const MARK_COLUMNS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

impl Relation<'_> {
    fn draw(&self) -> String {
        format!("UPDATE {} SET newest = newest + 1;", quote(&self.names.counter()))
    }

    fn drawn(&self) -> String {
        format!("(SELECT newest FROM {})", quote(&self.names.counter()))
    }

    fn upsert(&self, source: &str) -> String {
        format!(
            "INSERT INTO {} (key, version, deleted) {source} ON CONFLICT (key) \
             DO UPDATE SET version = excluded.version, deleted = excluded.deleted;",
            quote(&self.names.feed())
        )
    }

    /// The number that was drawn, behind all others. It is fresh, so there is no conflict.
    fn append(&self, source: &str) -> String {
        format!("INSERT INTO {} (version, stamp, key) {source};", quote(&self.names.order()))
    }

    fn trigger(&self, kind: &str, table: &Table, when: &str, body: &[String]) -> Trigger {
        let name = self.names.trigger(kind);
        let sql = format!("CREATE TRIGGER {} {when} BEGIN {} END", quote(&name), body.join(" "));
        Trigger { name, table: table.name.clone(), sql }
    }

    /// A number for the key of `row`, and whether the table has it.
    fn record(&self, row: &str) -> Vec<String> {
        let table = quote(&self.table.name);
        let values = format!(
            "VALUES ({}, {}, NOT EXISTS (SELECT 1 FROM {table} WHERE {}))",
            self.key.text(row),
            self.drawn(),
            self.key.same(&format!("{table}."), row),
        );
        let append = format!("VALUES ({}, {STAMP}, {})", self.drawn(), self.key.text(row));
        vec![self.draw(), self.upsert(&values), self.append(&append)]
    }

    /// The triggers on the relation itself.
    pub fn triggers(&self) -> Vec<Trigger> {
        let own = quote(&self.table.name);
        let moved = format!("AFTER UPDATE ON {own} WHEN {}", self.key.differ("OLD.", "NEW."));
        let mut all = vec![
            self.trigger(
                "insert",
                self.table,
                &format!("AFTER INSERT ON {own}"),
                &self.record("NEW."),
            ),
            self.trigger(
                "update",
                self.table,
                &format!("AFTER UPDATE ON {own}"),
                &self.record("NEW."),
            ),
            self.trigger("rekey", self.table, &moved, &self.record("OLD.")),
            self.trigger(
                "delete",
                self.table,
                &format!("AFTER DELETE ON {own}"),
                &self.record("OLD."),
            ),
        ];
        let others = self.table.uniques.iter().filter(|unique| !self.is_key(unique));
        for (place, unique) in others.enumerate() {
            for event in [Event::Insert, Event::Update] {
                let conflict = conflict(self.table, unique, event);
                let row = format!("{own}.");
                let select = format!(
                    "SELECT {}, {}, {DOUBTFUL} FROM {own} WHERE {}",
                    self.key.text(&row),
                    self.drawn(),
                    conflict.rows
                );
                let append = format!(
                    "SELECT {}, {STAMP}, {} FROM {own} WHERE {}",
                    self.drawn(),
                    self.key.text(&row),
                    conflict.rows
                );
                let body = [self.draw(), self.upsert(&select), self.append(&append)];
                let kind = format!("replace{place}_{}", event.word());
                all.push(self.trigger(&kind, self.table, &before(&own, event, &conflict), &body));
            }
        }
        all
    }

    /// Whether an index removes no other key than that of the new row: the triggers after the
    /// change name that one.
    fn is_key(&self, unique: &Unique) -> bool {
        let key: Vec<&str> = self.key.columns.iter().map(|column| column.sql.as_str()).collect();
        match unique {
            Unique::RowNumber(name) => key == [name.as_str()],
            Unique::Index { terms, condition: None, .. } => {
                terms.len() == key.len()
                    && terms.iter().all(|term| {
                        let Term::Column { name, collation } = term else {
                            return false;
                        };
                        let column = self.table.column(name);
                        key.contains(&quote(name).as_str())
                            && column.is_some_and(|column| column.collation == *collation)
                    })
            }
            Unique::Index { .. } => false,
        }
    }

    /// The triggers on a related table: each change leaves a mark with what rows are found by.
    ///
    /// They name no other table of the application's: SQLite refuses to rename a table while a
    /// trigger names one that is not there, and so would refuse every rebuild of the relation.
    pub fn related_triggers(&self, related: &Related<'_>) -> Vec<Trigger> {
        let own = quote(&related.table.name);
        let columns: Vec<String> = related.key.iter().map(|column| quote(&column.name)).collect();
        let watch = related.comparison();
        let id = digest([related.table.name.to_ascii_lowercase().as_str(), &watch], 8);
        let into = format!(
            "INSERT INTO {} (number, watch, {}) SELECT {}, {}",
            quote(&self.names.mark()),
            MARK_COLUMNS[..columns.len()].join(", "),
            self.drawn(),
            literal(&watch)
        );
        let mark = |row: &str, from: &str| {
            let values: Vec<String> =
                columns.iter().map(|column| format!("{row}{column}")).collect();
            let there: Vec<String> =
                values.iter().map(|value| format!("{value} IS NOT NULL")).collect();
            let (values, there) = (values.join(", "), there.join(" AND "));
            vec![self.draw(), format!("{into}, {values} {from}{there};")]
        };
        let kind = |what: &str| format!("{}_{id}_{what}", related.role);
        let moved: Vec<String> =
            columns.iter().map(|column| format!("OLD.{column} IS NOT NEW.{column}")).collect();
        let rekey = format!("AFTER UPDATE ON {own} WHEN {}", moved.join(" OR "));
        let after = |event: &str| format!("AFTER {event} ON {own}");
        let trigger = |what: &str, when: &str, body: &[String]| {
            self.trigger(&kind(what), related.table, when, body)
        };
        let mut all = vec![
            trigger("insert", &after("INSERT"), &mark("NEW.", "WHERE ")),
            trigger("update", &after("UPDATE"), &mark("NEW.", "WHERE ")),
            trigger("rekey", &rekey, &mark("OLD.", "WHERE ")),
            trigger("delete", &after("DELETE"), &mark("OLD.", "WHERE ")),
        ];
        for (place, unique) in related.table.uniques.iter().enumerate() {
            for event in [Event::Insert, Event::Update] {
                let conflict = conflict(related.table, unique, event);
                let body =
                    mark(&format!("{own}."), &format!("FROM {own} WHERE {} AND ", conflict.rows));
                let what = format!("replace{place}_{}", event.word());
                all.push(trigger(&what, &before(&own, event, &conflict), &body));
            }
        }
        all
    }
}

fn before(own: &str, event: Event, conflict: &Conflict) -> String {
    let guard = conflict.guard.as_ref().map_or(String::new(), |guard| format!("{guard} AND "));
    format!(
        "BEFORE {} ON {own} WHEN {guard}EXISTS (SELECT 1 FROM {own} WHERE {})",
        event.sql(),
        conflict.rows
    )
}

#[cfg(test)]
mod tests;
