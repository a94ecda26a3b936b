//! The rules of every source.
