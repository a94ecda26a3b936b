//! The digest of what a document became: tells whether an index holds exactly this document.

use sha2::{Digest as _, Sha256};

/// Bytes of a digest: chance makes two documents of one key alike once in 2^128.
pub(crate) const DIGEST_BYTES: usize = 16;

/// A digest.
pub(crate) type Digest = [u8; DIGEST_BYTES];

/// Takes the values of a document in the order of the fields.
#[derive(Debug, Default)]
pub(crate) struct Digester(Sha256);

impl Digester {
    /// Adds a value: its field, the kind of the value, and its bytes. Lengths go before, so that
    /// no two lists of values are one list of bytes.
    pub(crate) fn add(&mut self, field: &str, kind: u8, bytes: &[u8]) {
        self.0.update((field.len() as u64).to_le_bytes());
        self.0.update(field);
        self.0.update([kind]);
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    pub(crate) fn digest(self) -> Digest {
        let mut digest = [0; DIGEST_BYTES];
        digest.copy_from_slice(&self.0.finalize()[..DIGEST_BYTES]);
        digest
    }
}
