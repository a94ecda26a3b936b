//! The rules of every sink.
