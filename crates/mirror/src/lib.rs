//! How documents become columns or JSON text, the same in every mirror of a SQL database.

mod document;
mod json;

pub use document::{Cell, Converter, Shape, Unfit};
pub use json::{Unsayable, write_value};
