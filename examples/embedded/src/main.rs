//! The engine inside an application.

fn main() {}
