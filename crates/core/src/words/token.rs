//! Opaque tokens: random or hashed text that is compared for equality and for nothing else.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Text that is no token: empty, longer than 128 bytes, or with a byte that is not visible ASCII.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a token has 1 to 128 visible ASCII characters, this one has {0} bytes or others in it")]
pub struct InvalidToken(usize);

fn parse(text: &str) -> Result<Box<str>, InvalidToken> {
    if (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(text.into())
    } else {
        Err(InvalidToken(text.len()))
    }
}

macro_rules! tokens {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Box<str>);

        impl $name {
            /// Parses a token.
            ///
            /// # Errors
            /// [`InvalidToken`] unless `text` has 1 to 128 visible ASCII characters.
            pub fn parse(text: &str) -> Result<Self, InvalidToken> {
                parse(text).map(Self)
            }

            /// The text of the token.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidToken;
            fn try_from(text: String) -> Result<Self, InvalidToken> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(token: $name) -> String {
                token.0.into()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}

tokens! {
    /// Which ledger: drawn once, when the ledger is made.
    LedgerId;
    /// Which run.
    RunId;
    /// Which taking of a lease: drawn by the holder for each attempt to take one.
    LeaseToken;
    /// Which commit: drawn for each commit, so that an unknown outcome can be looked up.
    CommitToken;
    /// Which process: unique per process start.
    HolderId;
    /// Which life of a feed or of a pipeline: drawn when it is made, so that one that was removed
    /// and made again under the same name is another.
    Incarnation;
    /// A hash of the rules of a pipeline.
    Fingerprint;
    /// A hash of what capture consists of in the source: triggers, columns, watched tables.
    Signature;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_short_visible_ascii() {
        for bad in ["", " ", "a b", "é", "a\n", &"x".repeat(129)] {
            assert!(RunId::parse(bad).is_err(), "{bad:?}");
        }
        assert_eq!(RunId::parse("0197-a").map(|id| id.to_string()), Ok("0197-a".into()));
    }
}
