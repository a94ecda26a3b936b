//! Tests of the whole: crashes, exploration, memory.
