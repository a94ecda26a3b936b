//! What a user says about a relation of a source: its key, its documents, its related tables. What of
//! it is possible is the source's business.

use crate::limits::DOCUMENT_BYTES_MAX;

/// A relation and how its rows become documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationSpec {
    /// The table's name. In Postgres exactly so, with its schema and a dot before it unless it is on
    /// the search path.
    pub table: String,
    /// The columns that identify a row; empty for the primary key.
    pub key: Vec<String>,
    /// What a row becomes.
    pub document: Projection,
    /// An SQL condition over the table's columns: a row that does not meet it is not live.
    pub live_when: Option<String>,
    /// The tables whose changes change documents.
    pub watch: Vec<Watch>,
    /// Whether keys may be folded: those of columns with the collations NOCASE and RTRIM in SQLite,
    /// and of the type citext in Postgres.
    pub normal_form: bool,
    /// The most bytes of a document; one that is larger is not read.
    pub document_max: usize,
}

impl RelationSpec {
    /// All columns of a table under its primary key.
    pub fn of(table: impl Into<String>) -> Self {
        Self {
            table: table.into(),
            key: Vec::new(),
            document: Projection::Columns(Vec::new()),
            live_when: None,
            watch: Vec::new(),
            normal_form: false,
            document_max: DOCUMENT_BYTES_MAX,
        }
    }
}

/// How a row becomes a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Projection {
    /// These columns; empty for all that are shown.
    Columns(Vec<String>),
    /// A SELECT of one row whose key is bound by name (`:id`), in SQLite also by place (`?1`); in
    /// Postgres also of all rows, the key's columns among its own.
    Sql {
        /// The SELECT.
        query: String,
        /// Its columns that hold JSON text.
        json: Vec<String>,
    },
}

/// A table whose changes change documents of the relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watch {
    /// Each of its rows belongs to one row of the relation.
    Child {
        /// The table's name.
        table: String,
        /// Its columns that hold the relation's key, in the key's order.
        key: Vec<String>,
    },
    /// Rows of the relation refer to its rows.
    Parent {
        /// The table's name.
        table: String,
        /// The relation's columns that refer to it.
        via: Vec<String>,
        /// Its columns that they refer to; empty for its primary key.
        key: Vec<String>,
    },
}

/// A column: its name, and its type as the source writes it, which may be empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The type.
    pub declared_type: String,
}

/// What makes us look at every row of a table because no index finds the ones that are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// Each change of this related table.
    Change(String),
    /// Each document.
    Document,
}

/// A table that is looked through as a whole, again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unindexed {
    /// The table.
    pub table: String,
    /// When that is.
    pub cause: Cause,
    /// The statements that make the indexes which help; none if no index does.
    pub indexes: Vec<String>,
}
