//! Types of Postgres: what carries a value of one out of the database.

use truekeep_core::failure::PortError;
use truekeep_postgres::sqlx::Row;
use truekeep_postgres::{Failure, Transaction};

use super::names::quote;

/// A type, without what its modifiers say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PgType {
    /// As Postgres writes it.
    pub name: String,
    /// Where the type that it is made of, if it is a domain, or else it itself, stands in the
    /// catalogs: its schema.
    pub schema: String,
    /// And its name there; empty if it is another's than Postgres's own, but for citext.
    pub internal: String,
    /// The same as SQL text that means it whatever the search path, and of any length.
    pub sql: String,
    /// Its kind: `b` base, `c` composite, `e` enum, `r` range, `m` multirange.
    pub kind: String,
    /// Its category: `A` array.
    pub category: String,
}

impl PgType {
    /// Describes types by their numbers, in the order of the numbers.
    pub async fn describe(reading: &mut Transaction, types: &[i64]) -> Result<Vec<Self>, Failure> {
        let query = Transaction::query(include_str!("../../sql/type/describe.sql"));
        let rows = reading.rows(query.bind(types.to_vec())).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            let (schema, name): (String, String) = (row.try_get(2)?, row.try_get(3)?);
            let described = Self {
                name: row.try_get(1)?,
                sql: format!("{}.{}", quote(&schema), quote(&name)),
                internal: match schema.as_str() {
                    "pg_catalog" => name,
                    _ if name == "citext" => name,
                    _ => String::new(),
                },
                schema,
                kind: row.try_get(4)?,
                category: row.try_get(5)?,
            };
            found.push((row.try_get::<i64, _>(0)?, described));
        }
        let one = |number: &i64| {
            let of = found.iter().find(|(asked, _)| asked == number);
            // A pseudo-type such as that of a NULL without a type.
            of.map_or_else(Self::unknown, |(_, described)| described.clone())
        };
        Ok(types.iter().map(one).collect())
    }

    fn unknown() -> Self {
        let text = |text: &str| text.to_owned();
        Self {
            name: text("text"),
            schema: text("pg_catalog"),
            internal: text("text"),
            sql: text("pg_catalog.text"),
            kind: text("b"),
            category: text("S"),
        }
    }

    /// What carries its values.
    pub fn carrier(&self) -> Carrier {
        match (self.kind.as_str(), self.category.as_str(), self.internal.as_str()) {
            ("c", ..) | (_, "A", _) => Carrier::Made,
            (_, _, "int2" | "int4" | "int8" | "oid") => Carrier::Integer,
            (_, _, "float4" | "float8") => Carrier::Real,
            (_, _, "numeric") => Carrier::Number,
            (_, _, "bool" | "json" | "jsonb") => Carrier::Json,
            (_, _, "bytea") => Carrier::Bytes,
            (_, _, "date" | "timestamp" | "timestamptz") => Carrier::Time,
            _ => Carrier::Text,
        }
    }
}

/// How a value leaves the database: nothing is rounded, and nothing that is different looks equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    /// As an integer of 64 bits.
    Integer,
    /// As a double; a float of 32 bits as the double that its shortest text means.
    Real,
    /// As a number of JSON with all of its digits; NaN and infinity as text.
    Number,
    /// As JSON text, as the database has it.
    Json,
    /// As JSON text that the database makes: arrays and rows.
    Made,
    /// As bytes.
    Bytes,
    /// As text of ISO 8601; infinity as its name.
    Time,
    /// As text.
    Text,
}

impl Carrier {
    /// The value as SQL, ready to be carried.
    pub fn sql(self, value: &str) -> String {
        match self {
            Self::Integer => format!("({value})::int8"),
            Self::Real => format!("({value})::text::float8"),
            Self::Made => format!("to_json({value})::text"),
            Self::Bytes => format!("({value})::bytea"),
            Self::Time => format!("to_json({value}) #>> '{{}}'"),
            Self::Number | Self::Json | Self::Text => format!("({value})::text"),
        }
    }

    /// How many bytes a carried value has, as SQL.
    pub fn size(self, carried: &str) -> String {
        match self {
            Self::Integer | Self::Real => "8".into(),
            _ => format!("coalesce(octet_length({carried}), 1)"),
        }
    }
}

/// What a name may have been meant for.
pub(super) fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let cost = |name: &str| {
        let (one, other): (Vec<char>, Vec<char>) =
            (wanted.to_lowercase().chars().collect(), name.to_lowercase().chars().collect());
        // The edit distance of Levenshtein, one row of the table at a time.
        let mut row: Vec<usize> = (0..=other.len()).collect();
        for (i, a) in one.iter().enumerate() {
            let mut corner = row[0];
            row[0] = i + 1;
            for (j, b) in other.iter().enumerate() {
                let changed = corner + usize::from(a != b);
                corner = row[j + 1];
                row[j + 1] = changed.min(row[j] + 1).min(corner + 1);
            }
        }
        row[other.len()]
    };
    let best = names.into_iter().map(|name| (cost(name), name)).min();
    let close = best.filter(|(cost, name)| *cost <= name.chars().count().max(3) / 2);
    close.map_or_else(String::new, |(_, name)| format!("; the nearest name is {name:?}"))
}

/// A statement of the user's that cannot be, or a table that is not what it should be.
pub(super) fn halted(
    operation: &'static str,
    code: truekeep_core::code::Code,
    detail: String,
) -> Failure {
    let class = truekeep_core::failure::FailureClass::Halted;
    PortError::new(operation, class, code).detail(detail).into()
}
