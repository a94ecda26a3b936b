//! A mirror of the source in a SQLite table.
