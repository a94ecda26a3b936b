//! Keys: canonical text made by SQL in the database, and read back into typed values by SQL.
//!
//! The text is a function of the key's equality class and of nothing else (no setting of a session
//! changes it), and two classes never share a text:
//!
//! | type | text |
//! |---|---|
//! | integers, oid | `-12` |
//! | numeric | without trailing zeros: `1.5`, `NaN` |
//! | float | the shortest that means it; `0` for -0 |
//! | text, varchar, name, enum, bit | itself |
//! | char(n) | without trailing spaces, as it compares |
//! | citext, if a normal form is allowed | in lower case |
//! | uuid, inet, cidr, macaddr, bool, time | as Postgres writes it |
//! | bytea | hex, lower case |
//! | date | `2026-01-02`, with ` BC` behind it before the year 1; `infinity` |
//! | timestamp | `2026-01-02T03:04:05.000006`; with a time zone in UTC, and `Z` behind it |
//! | interval | in microseconds, a day being 24 hours and a month 30 days, as it compares |
//!
//! Several columns are a compact JSON array of these, integers bare and all else as strings.
//! Types whose equality is wider than any of these are refused.

use truekeep_core::code::Code;
use truekeep_postgres::Failure;

use super::names::quote;
use super::table::{Table, TableColumn};
use super::types::{PgType, halted};

const OPERATION: &str = "look at the key";

/// Which texts a type has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Integer,
    Numeric,
    Float,
    Text,
    Folded,
    Hex,
    Timestamp {
        zoned: bool,
    },
    Interval,
    /// Whatever Postgres writes.
    Plain,
}

impl Form {
    /// The form of a type; none if it has none.
    fn of(of: &PgType, normal_form: bool) -> Option<Self> {
        if of.kind == "e" {
            return Some(Self::Plain);
        }
        Some(match of.internal.as_str() {
            "int2" | "int4" | "int8" | "oid" => Self::Integer,
            "numeric" => Self::Numeric,
            "float4" | "float8" => Self::Float,
            "text" | "varchar" | "bpchar" | "name" | "char" => Self::Text,
            "citext" if normal_form => Self::Folded,
            "bytea" => Self::Hex,
            "timestamp" => Self::Timestamp { zoned: false },
            "timestamptz" => Self::Timestamp { zoned: true },
            "interval" => Self::Interval,
            "uuid" | "inet" | "cidr" | "macaddr" | "macaddr8" | "bool" | "time" | "timetz"
            | "date" | "bit" | "varbit" => Self::Plain,
            _ => return None,
        })
    }
}

/// A column of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyColumn {
    /// The name, as SQL text.
    pub sql: String,
    pub form: Form,
    of: PgType,
    collation: Option<String>,
}

impl KeyColumn {
    /// A column as part of a key.
    ///
    /// # Errors
    /// `KEY_REFUSED`, with the reason.
    fn of(table: &Table, column: &TableColumn, normal_form: bool) -> Result<Self, Failure> {
        let refused = |why: String| {
            let detail =
                format!("the column {} of {} {why}", quote(&column.name), table.name.quoted());
            halted(OPERATION, Code::KEY_REFUSED, detail)
        };
        if !column.not_null {
            return Err(refused("may be NULL: make it NOT NULL, or declare another `key`".into()));
        }
        if !column.deterministic {
            let why = "has a collation for which different texts are equal: declare another `key`";
            return Err(refused(why.into()));
        }
        let Some(form) = Form::of(&column.of, normal_form) else {
            let remedy = if column.of.internal == "citext" {
                "allow its lower case as its `normal_form`, or declare another `key`"
            } else {
                "declare another `key`"
            };
            let name = &column.of.name;
            return Err(refused(format!(
                "is of the type {name}, of which equal values may have different texts: {remedy}"
            )));
        };
        Ok(Self {
            sql: quote(&column.name),
            form,
            of: column.of.clone(),
            collation: column.collation.clone(),
        })
    }

    /// The operator by which two values are equal; an extension's stands in a schema of its own.
    fn equals(&self) -> String {
        match self.form {
            Form::Folded => format!("OPERATOR({}.=)", quote(&self.of.schema)),
            _ => "=".into(),
        }
    }

    /// The canonical text of a value of another type that is compared with this column; none if no
    /// value of that type can be relied on to have one.
    fn canonical_from(&self, value: &str, of: &PgType) -> Option<String> {
        let theirs = Form::of(of, true)?;
        let number = |form| matches!(form, Form::Integer | Form::Numeric);
        match (self.form, theirs) {
            _ if self.of.sql == of.sql => Some(self.canonical(value)),
            (ours, theirs) if number(ours) && number(theirs) => {
                Some(format!("trim_scale(({value})::numeric)::text"))
            }
            (Form::Float, Form::Float) => Some(self.canonical(&format!("(({value})::float8)"))),
            (Form::Text | Form::Folded, Form::Text | Form::Folded) => {
                Some(self.canonical(&format!("(({value})::text::{})", self.of.sql)))
            }
            _ => None,
        }
    }

    /// The canonical text of a value, as SQL.
    fn canonical(&self, value: &str) -> String {
        let bc = |value: &str| {
            format!("CASE WHEN {value} < '0001-01-01'::{} THEN ' BC' ELSE '' END", self.of.sql)
        };
        match self.form {
            Form::Integer | Form::Text | Form::Plain => format!("({value})::text"),
            Form::Numeric => format!("trim_scale(({value})::numeric)::text"),
            Form::Float => format!("(CASE WHEN {value} = 0 THEN 0 ELSE {value} END)::text"),
            Form::Folded => format!("lower(({value})::text)"),
            Form::Hex => format!("encode(({value})::bytea, 'hex')"),
            Form::Timestamp { zoned } => {
                let (shown, end) = if zoned {
                    (format!("(({value}) AT TIME ZONE 'UTC')"), "\"Z\"")
                } else {
                    (format!("({value})"), "")
                };
                format!(
                    "CASE WHEN isfinite({value}) THEN to_char({shown}, 'YYYY-MM-DD\"T\"HH24:MI:SS.US{end}') || {} \
                     ELSE ({value})::text END",
                    bc(value)
                )
            }
            Form::Interval => {
                let part = |name: &str| format!("extract({name} FROM {value})::numeric");
                format!(
                    "trim_scale(((({} * 12 + {}) * 30 + {}) * 86400 + {} * 3600 + {} * 60) * 1000000 + {})::text",
                    part("year"),
                    part("month"),
                    part("day"),
                    part("hour"),
                    part("minute"),
                    part("microseconds")
                )
            }
        }
    }

    /// The value of a text, as SQL; a text of no value is an error there.
    fn parse(&self, text: &str) -> String {
        let value = match self.form {
            Form::Hex => format!("decode({text}, 'hex')"),
            Form::Interval => format!(
                "make_interval(months => div(({text})::numeric, 2592000000000)::int4) \
                 + mod(({text})::numeric, 2592000000000)::int8 * interval '1 microsecond'"
            ),
            _ => {
                // A text is cut to no length before it is compared.
                let of = if self.of.internal == "varchar" { "text" } else { &self.of.sql };
                format!("({text})::{of}")
            }
        };
        match &self.collation {
            Some(collation) => format!("({value}) COLLATE {collation}"),
            None => value,
        }
    }
}

/// What identifies a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeyShape {
    pub columns: Vec<KeyColumn>,
}

impl KeyShape {
    /// The key of a table: the columns that are named, else the primary key.
    ///
    /// # Errors
    /// `KEY_REFUSED` or `RELATION_REFUSED`, with the reason and what to do.
    pub fn of(table: &Table, named: &[String], normal_form: bool) -> Result<Self, Failure> {
        let names = if named.is_empty() { table.primary_key() } else { named };
        if names.is_empty() {
            let detail = format!("{} has no primary key: declare a `key`", table.name.quoted());
            return Err(halted(OPERATION, Code::RELATION_REFUSED, detail));
        }
        let columns = names.iter().map(|name| table.named(name)).collect::<Result<Vec<_>, _>>()?;
        let same = |unique: &Vec<String>| {
            unique.len() == names.len() && names.iter().all(|name| unique.contains(name))
        };
        if !table.unique.iter().any(same) {
            let list: Vec<String> = names.iter().map(|name| quote(name)).collect();
            let detail = format!(
                "{} has no unique index on ({}) that holds for every row",
                table.name.quoted(),
                list.join(", ")
            );
            return Err(halted(OPERATION, Code::KEY_REFUSED, detail));
        }
        let columns = columns.into_iter().map(|column| KeyColumn::of(table, column, normal_form));
        Ok(Self { columns: columns.collect::<Result<_, _>>()? })
    }

    /// Some columns that rows are found by, whether they are a key or not.
    ///
    /// # Errors
    /// `KEY_REFUSED`, with the reason.
    pub fn loose(table: &Table, named: &[String]) -> Result<Self, Failure> {
        let columns = named.iter().map(|name| table.named(name)).collect::<Result<Vec<_>, _>>()?;
        let loose = |column: &TableColumn| {
            let column = TableColumn { not_null: true, deterministic: true, ..column.clone() };
            KeyColumn::of(table, &column, true)
        };
        Ok(Self { columns: columns.into_iter().map(loose).collect::<Result<_, _>>()? })
    }

    /// The canonical text of the key that columns of another table refer to, as SQL.
    ///
    /// # Errors
    /// `CONFIG_INVALID` if they cannot be compared with the key.
    pub fn canonical_from(
        &self,
        table: &Table,
        columns: &[String],
        prefix: &str,
    ) -> Result<String, Failure> {
        let refused = |why: String| halted(OPERATION, Code::CONFIG_INVALID, why);
        if columns.len() != self.columns.len() {
            let (own, theirs) = (self.columns.len(), columns.len());
            return Err(refused(format!(
                "{theirs} columns of {} are to hold a key of {own}",
                table.name.quoted()
            )));
        }
        let mut texts = Vec::new();
        for (own, name) in self.columns.iter().zip(columns) {
            let column = table.named(name)?;
            let text = own.canonical_from(&format!("{prefix}{}", quote(name)), &column.of);
            texts.push(text.ok_or_else(|| {
                let (theirs, of) = (quote(name), table.name.quoted());
                refused(format!(
                    "the column {theirs} of {of} is of the type {}, and {} of {}",
                    column.of.name, own.sql, own.of.name
                ))
            })?);
        }
        Ok(self.joined(texts))
    }

    fn joined(&self, mut texts: Vec<String>) -> String {
        if texts.len() == 1 {
            return texts.remove(0);
        }
        let part = |(column, text): (&KeyColumn, String)| {
            if column.form == Form::Integer { text } else { format!("to_json({text})::text") }
        };
        let parts: Vec<String> = self.columns.iter().zip(texts).map(part).collect();
        format!("'[' || {} || ']'", parts.join(" || ',' || "))
    }

    /// The canonical text of some values, as SQL.
    fn canonical_of(&self, values: &[String]) -> String {
        let texts = self.columns.iter().zip(values).map(|(column, value)| column.canonical(value));
        self.joined(texts.collect())
    }

    /// The canonical text of the columns behind a prefix (`t.`), as SQL.
    pub fn canonical(&self, prefix: &str) -> String {
        let values: Vec<String> =
            self.columns.iter().map(|column| format!("{prefix}{}", column.sql)).collect();
        self.canonical_of(&values)
    }

    /// The canonical text of the columns `c1`, `c2`, .. behind a prefix, as SQL.
    pub fn canonical_numbered(&self, prefix: &str) -> String {
        let values: Vec<String> = self.numbered().map(|name| format!("{prefix}{name}")).collect();
        self.canonical_of(&values)
    }

    /// `c1`, `c2`, ..
    pub fn numbered(&self) -> impl Iterator<Item = String> {
        (1..=self.columns.len()).map(|place| format!("c{place}"))
    }

    /// The values of a canonical text, each as SQL.
    pub fn values(&self, text: &str) -> Vec<String> {
        let single = self.columns.len() == 1;
        let part = |(place, column): (usize, &KeyColumn)| {
            let own =
                if single { text.to_owned() } else { format!("(({text})::json ->> {place})") };
            column.parse(&own)
        };
        self.columns.iter().enumerate().map(part).collect()
    }

    /// The values of a canonical text as `c1`, `c2`, .., a list in SQL.
    pub fn parse(&self, text: &str) -> String {
        let named = self.values(text).into_iter().zip(self.numbered());
        named.map(|(value, name)| format!("{value} AS {name}")).collect::<Vec<_>>().join(", ")
    }

    /// The columns behind a prefix as `c1`, `c2`, .., a list in SQL.
    pub fn as_numbered(&self, prefix: &str) -> String {
        let part =
            |(column, name): (&KeyColumn, String)| format!("{prefix}{} AS {name}", column.sql);
        self.columns.iter().zip(self.numbered()).map(part).collect::<Vec<_>>().join(", ")
    }

    /// That the columns behind a prefix have the values `c1`, `c2`, .. behind another, as SQL.
    pub fn same(&self, prefix: &str, numbered: &str) -> String {
        let part = |(column, name): (&KeyColumn, String)| {
            let equals = column.equals();
            format!("{prefix}{} {equals} {numbered}{name}", column.sql)
        };
        self.columns.iter().zip(self.numbered()).map(part).collect::<Vec<_>>().join(" AND ")
    }

    /// The columns behind a prefix, a list in SQL.
    pub fn list(&self, prefix: &str) -> String {
        let part = |column: &KeyColumn| format!("{prefix}{}", column.sql);
        self.columns.iter().map(part).collect::<Vec<_>>().join(", ")
    }

    /// The forms as text: what a feed's keys were made by.
    pub fn describe(&self) -> String {
        let part = |column: &KeyColumn| format!("{} {:?}", column.sql, column.form);
        self.columns.iter().map(part).collect::<Vec<_>>().join(", ")
    }
}
