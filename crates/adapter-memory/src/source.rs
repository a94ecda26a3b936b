//! The source in memory.
