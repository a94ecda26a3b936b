//! What a mirror is made of: its table and how documents become columns.

use truekeep_core::code::Code;
use truekeep_core::failure::{FailureClass, PortError};
use truekeep_mirror::Shape;

/// The columns that are ours in every mirror.
pub(crate) const OWN_COLUMNS: [(&str, &str); 3] =
    [("_key", "TEXT"), ("_rules", "INTEGER"), ("_version", "INTEGER")];

/// A mirror's table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorSpec {
    /// The table's name, as it is: it is quoted where it is used.
    pub table: String,
    /// How documents become columns.
    pub layout: Layout,
}

/// How documents become columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// The whole document as JSON text in one column.
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
    /// The type that the source declares; may be empty. It is told in a comment of the table's
    /// definition and not declared, because a declared type would convert values.
    pub declared: String,
}

impl MirrorSpec {
    /// The names of the document's columns, in order.
    pub(crate) fn columns(&self) -> Vec<&str> {
        match &self.layout {
            Layout::Json { column } => vec![column],
            Layout::Columns(columns) => columns.iter().map(|column| &*column.name).collect(),
        }
    }

    /// The document's columns.
    pub(crate) fn shape(&self) -> Shape<'_> {
        match &self.layout {
            Layout::Json { column } => Shape::Json(column),
            Layout::Columns(_) => Shape::Columns(self.columns()),
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
        if self.table.is_empty() || self.table.contains('\0') {
            return invalid(format!("{:?} is no name of a table", self.table));
        }
        let mut taken: Vec<&str> = OWN_COLUMNS.iter().map(|(name, _)| *name).collect();
        let columns = self.columns();
        if columns.is_empty() {
            return invalid(format!("mirror `{}` has no columns", self.table));
        }
        for name in columns {
            if name.contains('\0') {
                return invalid(format!("{name:?} is no name of a column"));
            }
            if taken.iter().any(|other| other.eq_ignore_ascii_case(name)) {
                return invalid(format!("mirror `{}` has column `{name}` twice", self.table));
            }
            taken.push(name);
        }
        Ok(())
    }
}
