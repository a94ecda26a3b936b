//! The derived stores: what they are, and how their tables of the file are read.

use std::fmt;
use std::num::NonZeroU32;
use std::ops::Range;
use std::path::PathBuf;

use toml::de::DeValue;

use super::reader::{Reader, nearest};
use super::sections::{filled, location, optional};
use super::{Address, Location, schema};

/// A derived store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SinkConfig {
    /// What it is.
    pub target: TargetConfig,
    /// The most records that a rebuild sends it in a second; none: as many as it takes.
    pub rate_max: Option<NonZeroU32>,
    pub(crate) span: Range<usize>,
}

/// What a derived store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetConfig {
    /// A table of a SQLite file.
    Mirror(MirrorConfig),
    /// A table of a Postgres server's database.
    #[cfg(feature = "postgres")]
    Table(TableConfig),
    /// A full-text index in a folder.
    #[cfg(feature = "tantivy")]
    Index(IndexConfig),
}

/// A table of a SQLite file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorConfig {
    /// The file.
    pub location: Location,
    /// The table that is written.
    pub table: String,
    /// How a document lies in the table.
    pub layout: LayoutConfig,
}

/// A table of a Postgres server's database.
#[cfg(feature = "postgres")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableConfig {
    /// The database.
    pub address: Address,
    /// The schema of the table.
    pub schema: String,
    /// The table that is written.
    pub table: String,
    /// How a document lies in the table.
    pub layout: LayoutConfig,
}

#[cfg(feature = "postgres")]
impl TableConfig {
    /// The table, by which two spellings of one are equal as far as can be told.
    pub(crate) fn named(&self) -> String {
        // What stands in the schema that is looked in first is called by its name alone.
        match self.schema.as_str() {
            "public" => self.table.clone(),
            schema => format!("{schema}.{}", self.table),
        }
    }
}

/// A full-text index in a folder.
#[cfg(feature = "tantivy")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexConfig {
    /// The folder.
    pub location: Location,
    /// The fields, in the order of their names, and the writer's memory.
    pub spec: truekeep_sink_tantivy::IndexSpec,
}

impl fmt::Display for TargetConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mirror(mirror) => write!(f, "table `{}` in {}", mirror.table, mirror.location),
            #[cfg(feature = "postgres")]
            Self::Table(table) => {
                write!(f, "table `{}.{}` in {}", table.schema, table.table, table.address)
            }
            #[cfg(feature = "tantivy")]
            Self::Index(index) => write!(f, "index {}", index.location),
        }
    }
}

impl TargetConfig {
    /// Its file or folder, if it is in one.
    pub fn location(&self) -> Option<&Location> {
        match self {
            Self::Mirror(mirror) => Some(&mirror.location),
            #[cfg(feature = "postgres")]
            Self::Table(_) => None,
            #[cfg(feature = "tantivy")]
            Self::Index(index) => Some(&index.location),
        }
    }

    /// Whether it is a table, which cannot be searched.
    pub fn is_mirror(&self) -> bool {
        match self {
            Self::Mirror(_) => true,
            #[cfg(feature = "postgres")]
            Self::Table(_) => true,
            #[cfg(feature = "tantivy")]
            Self::Index(_) => false,
        }
    }

    /// What is written, by which two spellings of one are equal.
    pub(crate) fn relation(&self) -> (PathBuf, String) {
        match self {
            // Letters are equal in any case of ASCII for SQLite.
            Self::Mirror(mirror) => {
                (mirror.location.canonical(), mirror.table.to_ascii_lowercase())
            }
            #[cfg(feature = "postgres")]
            Self::Table(table) => (table.address.canonical().into(), table.named()),
            #[cfg(feature = "tantivy")]
            Self::Index(index) => (index.location.canonical(), String::new()),
        }
    }
}

/// How a document lies in a mirror's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LayoutConfig {
    /// One column per value of the document.
    Columns,
    /// The whole document as JSON in this column.
    Json(String),
}

pub(super) fn is_server(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

pub(super) fn sink(table: &Reader<'_>) -> Option<SinkConfig> {
    let kind = table.required("kind", &format!("write one of: {}", KINDS.join(", ")))?;
    let target = match kind.value.as_str() {
        "sqlite" => {
            table.only("kind `sqlite`", schema::MIRROR);
            mirror(table).map(TargetConfig::Mirror)
        }
        #[cfg(feature = "postgres")]
        "postgres" => {
            table.only("kind `postgres`", schema::TABLE);
            server_table(table).map(TargetConfig::Table)
        }
        #[cfg(feature = "tantivy")]
        "tantivy" => {
            table.only("kind `tantivy`", schema::INDEX);
            super::index::read(table).map(TargetConfig::Index)
        }
        other => {
            let message = format!("unknown kind of sink `{other}`");
            table.gather.problem(&kind.span, message, nearest(other, KINDS.iter().copied()));
            None
        }
    };
    let rate_max = table.integer("rate_max", 1..=u32::MAX).and_then(NonZeroU32::new);
    Some(SinkConfig { target: target?, rate_max, span: table.span.clone() })
}

/// The kinds of sinks that this program was built with.
const KINDS: &[&str] = &[
    "sqlite",
    #[cfg(feature = "postgres")]
    "postgres",
    #[cfg(feature = "tantivy")]
    "tantivy",
];

fn mirror(table: &Reader<'_>) -> Option<MirrorConfig> {
    let location = location(table);
    let name = table.required("table", "name the table that is written");
    let layout = layout(table);
    Some(MirrorConfig {
        location: location?.value,
        table: filled(table, "table", name?)?.value,
        layout: layout?,
    })
}

/// The schema of a table unless another is named.
#[cfg(feature = "postgres")]
const SCHEMA: &str = "public";

#[cfg(feature = "postgres")]
fn server_table(table: &Reader<'_>) -> Option<TableConfig> {
    const REMEDY: &str = "write where it is, as in `url = \"postgres://user@host/name\"`";
    let written = table.value("url").and_then(|value| value.get_ref().as_str()).map(str::to_owned);
    let url = table.required("url", REMEDY).filter(|url| {
        let is_server = is_server(&url.value);
        if !is_server {
            let message = "this is no address of a Postgres server".to_owned();
            table.gather.problem(&url.span, message, REMEDY);
        }
        is_server
    });
    let schema = optional(table, "schema", |table, key| filled(table, key, table.text(key)?));
    let name = table.required("table", "name the table that is written");
    let layout = layout(table);
    Some(TableConfig {
        address: Address::new(written.unwrap_or_default(), url?.value),
        schema: schema?.map_or_else(|| SCHEMA.to_owned(), |found| found.value),
        table: filled(table, "table", name?)?.value,
        layout: layout?,
    })
}

fn layout(table: &Reader<'_>) -> Option<LayoutConfig> {
    let Some(value) = table.value("layout") else { return Some(LayoutConfig::Columns) };
    match value.get_ref() {
        DeValue::String(text) if text == "columns" => Some(LayoutConfig::Columns),
        DeValue::Table(_) => {
            let layout = table.table("layout", schema::LAYOUT)?;
            let column = layout.required("json", "write `layout = { json = \"document\" }`")?;
            Some(LayoutConfig::Json(filled(&layout, "json", column)?.value))
        }
        _ => {
            table.gather.mistyped("layout", value, "\"columns\" or { json = \"document\" }");
            None
        }
    }
}

#[cfg(all(test, feature = "postgres"))]
mod tests;
