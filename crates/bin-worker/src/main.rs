//! The worker as a service.

fn main() {}
