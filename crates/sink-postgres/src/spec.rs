//! What a mirror is made of: its table and how documents become columns.

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_mirror::Shape;

use crate::types::ColumnType;

/// The columns that are ours in every mirror.
pub(crate) const OWN_COLUMNS: [(&str, &str); 3] =
    [("_key", "text"), ("_rules", "bigint"), ("_version", "bigint")];

/// What Postgres has in every table.
const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "xmin", "cmin", "xmax", "cmax", "ctid"];

/// Bytes of a name; Postgres cuts a longer one off without a word.
pub(crate) const NAME_BYTES_MAX: usize = 63;

/// Columns of a table.
const COLUMNS_MAX: usize = 1_600;

/// A mirror's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorSpec {
    /// The schema, which has to be there.
    pub schema: String,
    /// The table's name, as it is: it is quoted where it is used.
    pub table: String,
    /// How documents become columns.
    pub layout: Layout,
}

/// How documents become columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// The whole document in one column of type `json`, which keeps its text as it is.
    ///
    /// A document whose only value is JSON and has the column's name is that JSON; every other
    /// document becomes an object of its values.
    Json {
        /// The column's name.
        column: String,
    },
    /// A column for each value.
    Columns(Vec<MirrorColumn>),
}

/// A column of a mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorColumn {
    /// The name of the document's value, and of the column.
    pub name: String,
    /// The type.
    pub kind: ColumnType,
}

impl MirrorSpec {
    /// The document's columns, in order.
    pub(crate) fn columns(&self) -> Vec<(&str, ColumnType)> {
        match &self.layout {
            Layout::Json { column } => vec![(column, ColumnType::JSON)],
            Layout::Columns(columns) => {
                columns.iter().map(|column| (&*column.name, column.kind)).collect()
            }
        }
    }

    /// The document's columns, for the conversion.
    pub(crate) fn shape(&self) -> Shape<'_> {
        match &self.layout {
            Layout::Json { column } => Shape::Json(column),
            Layout::Columns(_) => {
                Shape::Columns(self.columns().into_iter().map(|(name, _)| name).collect())
            }
        }
    }

    /// Whether a table of these names can be made at all.
    ///
    /// # Errors
    /// Class Halted with `CONFIG_INVALID`, naming the table or column.
    pub(crate) fn check(&self) -> Result<(), PortError> {
        let invalid = |detail: String| {
            let error = PortError::new("use a mirror", FailureClass::Halted, Code::CONFIG_INVALID);
            Err(error.detail(detail))
        };
        let unusable =
            |name: &str| name.is_empty() || name.contains('\0') || name.len() > NAME_BYTES_MAX;
        for (name, kind) in [(&self.schema, "schema"), (&self.table, "table")] {
            if unusable(name) {
                return invalid(format!("{name:?} is no name of a {kind} of Postgres"));
            }
        }
        let mut taken: Vec<&str> = OWN_COLUMNS.iter().map(|(name, _)| *name).collect();
        let columns = self.columns();
        if columns.is_empty() {
            return invalid(format!("mirror `{}` has no columns", self.table));
        }
        if columns.len() + taken.len() > COLUMNS_MAX {
            return invalid(format!("mirror `{}` has {} columns", self.table, columns.len()));
        }
        for (name, _) in columns {
            if unusable(name) || SYSTEM_COLUMNS.contains(&name) {
                return invalid(format!("{name:?} is no name of a column of Postgres"));
            }
            if taken.contains(&name) {
                return invalid(format!("mirror `{}` has column `{name}` twice", self.table));
            }
            taken.push(name);
        }
        Ok(())
    }
}
