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
use super::table::{Table, Unique};

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

/// A related table whose rows belong to one of the relation's.
#[derive(Debug)]
pub(super) struct Child<'a> {
    pub table: &'a Table,
    /// Its columns that hold the relation's key, in the key's order.
    pub key: Vec<String>,
}

/// A related table that rows of the relation refer to.
#[derive(Debug)]
pub(super) struct Parent<'a> {
    pub table: &'a Table,
    /// The relation's columns that refer to it.
    pub via: Vec<String>,
    /// Its columns that they refer to.
    pub key: Vec<String>,
}

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
        vec![self.draw(), self.upsert(&values)]
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
                let body = [self.draw(), self.upsert(&select)];
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
                        let super::table::Term::Column { name, collation } = term else {
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

    /// The triggers on a child: each change gives the parents of its old and its new row a number.
    pub fn child_triggers(&self, child: &Child<'_>) -> Vec<Trigger> {
        let own = quote(&child.table.name);
        let columns: Vec<String> = child.key.iter().map(|name| quote(name)).collect();
        let touch = |value: &dyn Fn(&str) -> String| {
            // Unary plus takes the child's affinity away, so that the parent's is applied.
            let same = self.key.columns.iter().zip(&columns).map(|(parent, column)| {
                format!("truekeep_parent.{} = {}", parent.sql, value(column))
            });
            let select = format!(
                "SELECT {}, {}, {LIVE} FROM {} AS truekeep_parent WHERE {}",
                self.key.text("truekeep_parent."),
                self.drawn(),
                quote(&self.table.name),
                same.collect::<Vec<_>>().join(" AND "),
            );
            vec![self.draw(), self.upsert(&select)]
        };
        let removed = |conflict: &Conflict| {
            touch(&|column| format!("(SELECT +{own}.{column} FROM {own} WHERE {})", conflict.rows))
        };
        let of = |row: &'static str| touch(&move |column| format!("+{row}{column}"));
        self.related("child", child.table, &columns, &child.key, &of, &removed)
    }

    /// The triggers on a parent: each change leaves a mark with the value that rows refer to.
    pub fn parent_triggers(&self, parent: &Parent<'_>) -> Vec<Trigger> {
        let own = quote(&parent.table.name);
        let columns: Vec<String> = parent.key.iter().map(|name| quote(name)).collect();
        let collations: Vec<&str> = parent
            .key
            .iter()
            .map(|name| parent.table.column(name).map_or("BINARY", |c| c.collation.as_str()))
            .collect();
        let watch = serde_json::json!({ "via": parent.via, "collate": collations }).to_string();
        let mark = quote(&self.names.mark());
        let places: Vec<&str> = ["a", "b", "c", "d"].into_iter().take(columns.len()).collect();
        let into = format!("INSERT INTO {mark} (number, watch, {})", places.join(", "));
        let values = |row: &str| {
            columns.iter().map(|column| format!("{row}{column}")).collect::<Vec<_>>().join(", ")
        };
        let of = |row: &'static str| {
            let text =
                format!("{into} VALUES ({}, {}, {});", self.drawn(), literal(&watch), values(row));
            vec![self.draw(), text]
        };
        let removed = |conflict: &Conflict| {
            let text = format!(
                "{into} SELECT {}, {}, {} FROM {own} WHERE {};",
                self.drawn(),
                literal(&watch),
                values(&format!("{own}.")),
                conflict.rows
            );
            vec![self.draw(), text]
        };
        let identity: Vec<String> = parent.via.iter().chain(&parent.key).cloned().collect();
        self.related("parent", parent.table, &columns, &identity, &of, &removed)
    }

    /// The triggers on a related table, which differ only in what they do about a row.
    fn related(
        &self,
        role: &str,
        table: &Table,
        columns: &[String],
        identity: &[String],
        of: &dyn Fn(&'static str) -> Vec<String>,
        removed: &dyn Fn(&Conflict) -> Vec<String>,
    ) -> Vec<Trigger> {
        let own = quote(&table.name);
        let name = table.name.to_ascii_lowercase();
        let texts = std::iter::once(name.as_str()).chain(identity.iter().map(String::as_str));
        let id = digest(texts, 8);
        let kind = |what: &str| format!("{role}_{id}_{what}");
        let moved = columns
            .iter()
            .map(|column| format!("OLD.{column} IS NOT NEW.{column}"))
            .collect::<Vec<_>>()
            .join(" OR ");
        let after = |event: &str| format!("AFTER {event} ON {own}");
        let rekey = format!("AFTER UPDATE ON {own} WHEN {moved}");
        let mut all = vec![
            self.trigger(&kind("insert"), table, &after("INSERT"), &of("NEW.")),
            self.trigger(&kind("update"), table, &after("UPDATE"), &of("NEW.")),
            self.trigger(&kind("rekey"), table, &rekey, &of("OLD.")),
            self.trigger(&kind("delete"), table, &after("DELETE"), &of("OLD.")),
        ];
        for (place, unique) in table.uniques.iter().enumerate() {
            for event in [Event::Insert, Event::Update] {
                let conflict = conflict(table, unique, event);
                let kind = kind(&format!("replace{place}_{}", event.word()));
                let when = before(&own, event, &conflict);
                all.push(self.trigger(&kind, table, &when, &removed(&conflict)));
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
