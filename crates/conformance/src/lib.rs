//! The rules that every ledger, source and sink obeys, as functions anyone can run.
