//! truekeep.toml to validated config to wired ports: the crate that names adapters, sinks, clocks and randomness.
