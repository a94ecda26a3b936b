//! Growing numbers, each a type of its own, and the order of documents.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// Takes a number.
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The number.
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The number after this one; the greatest number stays.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )*};
}

numbers! {
    /// The number of a record's newest change: grows strictly per key, in commit order.
    Version;
    /// Counts the rules a pipeline has had; orders documents before the version does.
    RulesNumber;
    /// Which claim of completeness a run works for. Data writes never move it.
    Epoch;
    /// Orders the holders of a lease: a greater fence is a later holder.
    Fence;
    /// Counts the commits of a run.
    RunVersion;
    /// Counts what operators decided about a pipeline.
    Revision;
    /// Counts the batches a sink was sent: what tells a restored sink or ledger from the real one.
    MarkNumber;
    /// Counts the acknowledgements a consumer has written into the source.
    RegistrationCounter;
    /// One of several versions of all records that a sink holds beside each other, from 1.
    Generation;
    /// Counts the swaps of what a sink's readers see.
    SwapNumber;
}

impl MarkNumber {
    /// How many batches a turn may send, retries included.
    const TURN: u64 = 1 << 20;

    /// The first batch of the turn after the one that this batch belongs to.
    #[must_use]
    pub const fn turn_after(self) -> Self {
        Self((self.0 / Self::TURN + 1).saturating_mul(Self::TURN))
    }

    /// The last batch that the turn after this batch's may send.
    #[must_use]
    pub const fn turn_after_last(self) -> Self {
        Self(self.turn_after().0.saturating_add(Self::TURN - 1))
    }
}

/// Names a batch: the fence of the holder that sent it, and its number. Two holders may give one
/// number to different batches, when nothing is known of what the one before has sent; the later
/// fence is the later batch.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct BatchName {
    /// Whose it is.
    pub fence: Fence,
    /// Counts the holder's batches.
    pub number: MarkNumber,
}

impl fmt::Display for BatchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} under fence {}", self.number, self.fence)
    }
}

/// How often something was tried: 0 before the first try.
pub type Attempt = u32;

/// The place of a document in a key's history. A sink never replaces a greater rank by a smaller
/// one; an equal one may replace.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Rank {
    /// The rules the document was made under; compared first.
    pub rules: RulesNumber,
    /// The version of the record.
    pub version: Version,
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}v{}", self.rules, self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(rules: u64, version: u64) -> Rank {
        Rank { rules: RulesNumber::new(rules), version: Version::new(version) }
    }

    #[test]
    fn rules_order_before_versions() {
        assert!(rank(2, 1) > rank(1, 900));
        assert!(rank(1, 2) > rank(1, 1));
    }

    #[test]
    fn batches_of_a_turn_stand_between_those_of_its_neighbours() {
        let none = MarkNumber::new(0);
        let first = none.turn_after();
        assert!(none < first && first.next() < none.turn_after_last());
        assert_eq!(first.turn_after(), none.turn_after_last().next());
        assert_eq!(first.next().turn_after(), first.turn_after());
    }

    #[test]
    fn the_greatest_number_stays() {
        assert_eq!(Version::new(u64::MAX).next(), Version::new(u64::MAX));
    }
}
