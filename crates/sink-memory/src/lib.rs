//! The reference sink, in memory.
