//! The signature: what shows that every change since the last full pass was recorded.
//!
//! It covers our triggers on the relation and on every related table, each with its text, its
//! table and its place in the schema, and the seal behind them; and the columns that documents are
//! made of, as the schema has them. Columns of unique indexes need no mention: the triggers' text is
//! made from them, and a text that is not the wanted one breaks capture. All columns of these tables
//! are stored, and each pipeline compares those that it uses. A trigger that was dropped and made again stands behind the seal. If all of
//! them and the seal were, their places tell, unless nothing was made in between. VACUUM numbers
//! the schema anew in the same order: that is told by the places alone having changed within fewer
//! steps of the schema's version than making anything of ours again in its order takes.

use rusqlite::Connection;
use truekeep_core::Signature;
use truekeep_sqlite::Failure;

use super::capture::tables;
use super::names::{FeedNames, digest, quote};
use super::tokens::generated;
use super::triggers::Trigger;

/// What a pipeline reads of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Use {
    pub table: String,
    /// The columns; none stands for all that there are.
    pub columns: Option<Vec<String>>,
}

/// A column as the schema has it: table, name, place, and all that decides its values.
type Described = Vec<Option<String>>;

/// What is stored, beside what stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    Same,
    /// Nothing but places differs.
    Moved,
    Changed,
}

/// What stands in the schema now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Present {
    /// The tables that this feed needs, of those that are there.
    pub tables: Vec<String>,
    /// Our triggers, each as it stands there.
    pub triggers: Vec<Trigger>,
    /// The application's triggers that run before ours: those made later do, and may end a
    /// statement, or only its triggers, while its row stays. Each with its table.
    pub overtaking: Vec<(String, String)>,
    /// What is not as it should be, one line each.
    pub differences: Vec<String>,
    /// A digest of texts and order.
    pub texts: String,
    /// A digest of places in the schema.
    pub places: String,
    uses: Vec<Use>,
    columns: Vec<Described>,
}

impl Present {
    /// Reads the schema.
    pub fn read(
        connection: &Connection,
        names: &FeedNames,
        wanted: &[Trigger],
        uses: Vec<Use>,
    ) -> Result<Self, Failure> {
        let mut schema = connection.prepare_cached(
            "SELECT rowid, type, name, tbl_name, sql FROM sqlite_schema
             WHERE sql IS NOT NULL AND (type = 'trigger' OR name LIKE 'truekeep\\_%' ESCAPE '\\')
             ORDER BY rowid",
        )?;
        let mut rows = schema.query([])?;
        let mut found = Self {
            tables: Vec::new(),
            triggers: Vec::new(),
            overtaking: Vec::new(),
            differences: Vec::new(),
            texts: String::new(),
            places: String::new(),
            uses,
            columns: Vec::new(),
        };
        let (mut texts, mut places) = (Vec::new(), Vec::new());
        let mut sealed = false;
        while let Some(row) = rows.next()? {
            let (place, kind): (i64, String) = (row.get(0)?, row.get(1)?);
            let (name, table, sql): (String, String, String) =
                (row.get(2)?, row.get(3)?, row.get(4)?);
            if kind == "table" {
                if is_as_made(names, &name, &sql) {
                    found.tables.push(name);
                }
            } else if names.kind(&name).is_some() {
                sealed |= kind == "view";
                places.push(place.to_string());
                texts.extend([name.clone(), table.clone(), sql.clone()]);
                if kind == "trigger" {
                    found.triggers.push(Trigger { name, table, sql });
                }
            } else if kind == "trigger" && found.guards(wanted, &table) && !is_ours(&name) {
                found.overtaking.push((name, table));
            }
        }
        found.texts = digest(texts.iter().map(String::as_str), 32);
        found.places = digest(places.iter().map(String::as_str), 16);
        found.differences = found.compare(names, wanted, sealed);
        found.columns = found.describe(connection)?;
        Ok(found)
    }

    /// Whether one of the wanted triggers on a table has been read.
    fn guards(&self, wanted: &[Trigger], table: &str) -> bool {
        let read = |trigger: &Trigger| self.triggers.iter().any(|read| read.name == trigger.name);
        wanted.iter().any(|trigger| trigger.table.eq_ignore_ascii_case(table) && read(trigger))
    }

    /// Whether a trigger stands as it should, with none that was made later before it.
    pub fn stands(&self, wanted: &Trigger) -> bool {
        let on_its_table =
            |(_, table): &(String, String)| table.eq_ignore_ascii_case(&wanted.table);
        self.triggers.contains(wanted) && !self.overtaking.iter().any(on_its_table)
    }

    fn compare(&self, names: &FeedNames, wanted: &[Trigger], sealed: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for table in [names.feed(), names.order(), names.counter(), names.mark()] {
            if !self.has(&table) {
                lines.push(format!("table {} is missing", quote(&table)));
            }
        }
        for trigger in wanted {
            let name = quote(&trigger.name);
            match self.triggers.iter().find(|present| present.name == trigger.name) {
                None => {
                    lines.push(format!("trigger {name} on {} is missing", quote(&trigger.table)))
                }
                Some(present) if !present.table.eq_ignore_ascii_case(&trigger.table) => {
                    lines.push(format!("trigger {name} is on {}", quote(&present.table)))
                }
                Some(present) if present.sql != trigger.sql => {
                    lines.push(format!("trigger {name} has another text"));
                }
                Some(_) => {}
            }
        }
        for stray in self.strays(names, wanted) {
            lines.push(format!("trigger {} is left over", quote(&stray.name)));
        }
        for (name, table) in &self.overtaking {
            let (name, table) = (quote(name), quote(table));
            lines.push(format!("trigger {name} on {table} was made later and runs before ours"));
        }
        if !sealed {
            lines.push(format!("view {} is missing", quote(&names.seal())));
        }
        lines
    }

    /// Our triggers on the relation's own changes that are no longer wanted. Those on related
    /// tables may be another pipeline's.
    pub fn strays<'a>(
        &'a self,
        names: &'a FeedNames,
        wanted: &'a [Trigger],
    ) -> impl Iterator<Item = &'a Trigger> {
        self.triggers.iter().filter(move |present| {
            let kind = names.kind(&present.name).unwrap_or_default();
            let shared = kind.starts_with("child_") || kind.starts_with("parent_");
            !shared && !wanted.iter().any(|trigger| trigger.name == present.name)
        })
    }

    /// Whether one of our tables is there.
    pub fn has(&self, table: &str) -> bool {
        self.tables.iter().any(|present| present == table)
    }

    /// The columns of every table that this feed is about, whichever pipeline reads it.
    fn describe(&self, connection: &Connection) -> Result<Vec<Described>, Failure> {
        let tables = self.triggers.iter().map(|trigger| &trigger.table);
        let tables: std::collections::BTreeSet<String> = tables
            .chain(self.uses.iter().map(|used| &used.table))
            .map(|table| table.to_ascii_lowercase())
            .collect();
        let mut statement = connection.prepare_cached(
            "SELECT s.sql, x.name, x.cid, x.type, x.dflt_value, x.hidden
             FROM sqlite_schema AS s JOIN pragma_table_xinfo(s.name) AS x
             WHERE s.type = 'table' AND s.name = ?1 COLLATE NOCASE ORDER BY x.cid",
        )?;
        let mut all = Vec::new();
        for table in tables {
            let mut rows = statement.query([&table])?;
            while let Some(row) = rows.next()? {
                let (sql, name): (String, String) = (row.get(0)?, row.get(1)?);
                let (place, hidden): (i64, i64) = (row.get(2)?, row.get(5)?);
                all.push(vec![
                    Some(table.clone()),
                    Some(name.clone()),
                    Some(place.to_string()),
                    row.get(3)?,
                    row.get(4)?,
                    Some(hidden.to_string()),
                    (hidden > 1).then(|| generated(&sql, &name)).flatten(),
                ]);
            }
        }
        Ok(all)
    }

    /// Those columns that this pipeline uses.
    fn used<'a>(&self, columns: &'a [Described]) -> Vec<&'a Described> {
        let is = |column: &Described, place: usize, name: &str| {
            let found = column.get(place).and_then(Option::as_deref);
            found.is_some_and(|found| found.eq_ignore_ascii_case(name))
        };
        let within = |column: &&Described| {
            self.uses.iter().any(|used| {
                let names = used.columns.as_ref();
                is(column, 0, &used.table)
                    && names.is_none_or(|names| names.iter().any(|name| is(column, 1, name)))
            })
        };
        columns.iter().filter(within).collect()
    }

    /// The signature as it is stored.
    pub fn stored(&self) -> String {
        let columns = serde_json::Value::from_iter(self.columns.iter().cloned());
        format!("{}.{}.{columns}", self.texts, self.places)
    }

    /// The signature to store when only the schema's version or places moved: what other pipelines
    /// read may have changed, so the columns stay as they were stored.
    pub fn moved(&self, stored: &str) -> String {
        let columns = stored.splitn(3, '.').nth(2).unwrap_or_default();
        format!("{}.{}.{columns}", self.texts, self.places)
    }

    /// The signature as it is told: equal texts stay equal over a VACUUM.
    pub fn told(&self) -> Signature {
        let columns = self.used(&self.columns).into_iter().flatten();
        let columns = columns.map(|part| part.as_deref().unwrap_or_default());
        let digest = digest(std::iter::once(self.texts.as_str()).chain(columns), 32);
        Signature::parse(&digest).expect("hex digits are visible ASCII")
    }

    /// How what is stored differs from what stands there.
    pub fn held(&self, stored: &str) -> Held {
        let mut parts = stored.splitn(3, '.');
        let (texts, places) = (parts.next(), parts.next());
        let columns: Option<Vec<Described>> =
            parts.next().and_then(|columns| serde_json::from_str(columns).ok());
        let same = columns.is_some_and(|columns| self.used(&columns) == self.used(&self.columns));
        if !same || texts != Some(&self.texts) {
            Held::Changed
        } else if places == Some(&self.places) {
            Held::Same
        } else {
            Held::Moved
        }
    }
}

/// Whether a table has the text that we make it with. One of an earlier form is as good as none.
fn is_as_made(names: &FeedNames, name: &str, sql: &str) -> bool {
    let ours = [names.feed(), names.order(), names.counter(), names.mark()];
    let made = |statement: String| statement.replacen("IF NOT EXISTS ", "", 1) == sql;
    !ours.iter().any(|table| table == name) || tables(names).into_iter().any(made)
}

/// Whether a trigger is a feed's: those raise nothing.
fn is_ours(name: &str) -> bool {
    name.to_ascii_lowercase().starts_with("truekeep_")
}
