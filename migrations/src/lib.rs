//! The ledger's schema, one file per step and dialect.
