//! The source: feed, records and capture in the application's own SQLite file.
